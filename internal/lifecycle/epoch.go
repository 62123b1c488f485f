package lifecycle

// A TargetEpoch records the latest epoch that a target of a provider was raised to (see
// target.Epoch). All work in the target shares this one record.
type TargetEpoch struct {
	// Version is the version that was read; 0 for none.
	Version  int64  `json:"-"`
	Provider string `json:"provider"`
	Identity string `json:"identity"` // the target's identity
	Line     string `json:"line,omitempty"`
	Count    int64  `json:"count,omitempty"`
	Mark     string `json:"mark,omitempty"`
	// Reserved is the mark of the next raise, which may have been made; empty for none.
	Reserved string `json:"reserved,omitempty"`
}
