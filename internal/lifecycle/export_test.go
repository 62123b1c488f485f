package lifecycle

// States lists every state, for tables that must be complete.
func States() []State {
	return []State{Absent, Creating, Ready, Updating, CreateFailed, Deleting, DeleteFailed, Deleted, Quarantined}
}

// Events lists every event, for tables that must be complete.
func Events() []Event {
	return []Event{BeginCreate, BeginUpdate, BeginDelete, Entomb, BeginOrphanDeletion, Succeed, Fail, Keep, Remove}
}
