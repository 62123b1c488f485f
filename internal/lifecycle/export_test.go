package lifecycle

// States lists every state, for tables that must be complete.
func States() []State {
	return []State{Absent, Creating, Ready, Updating, CreateFailed, Deleting, DeleteFailed, Deleted, Quarantining,
		Quarantined, Releasing}
}

// Events lists every event, for tables that must be complete.
func Events() []Event {
	return []Event{BeginCreate, BeginUpdate, BeginDelete, Entomb, BeginOrphanDeletion, BeginQuarantine, BeginRelease,
		Succeed, Fail, Keep, Remove}
}
