package lifecycle

// A TargetEpoch is the latest epoch that a target of a provider has said to be at;
// provider.Epoch says what that is. Steps of any instance in the target write it, and
// it changes so seldom that they hardly meet.
type TargetEpoch struct {
	// Version is the one that was read; 0 for none.
	Version  int64  `json:"-"`
	Provider string `json:"provider"`
	Identity string `json:"identity"` // of the target
	Line     string `json:"line,omitempty"`
	Count    int64  `json:"count,omitempty"`
}
