package lifecycle

// A Source is the instance that a provision restores, of the same platform, as it
// was when it was chosen.
type Source struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
	// Operation is the last one that it had had: each update and each deletion
	// is another.
	Operation string `json:"operation,omitempty"`
	// Retained says that it is deleted, and that what was retained of it becomes the
	// instance that is made.
	Retained bool `json:"retained,omitempty"`
}

// Key is the source's, of the instance that is restored from it.
func (s Source) Key(restored Key) Key { return Key{Platform: restored.Platform, Instance: s.Instance} }

// AsSource is the instance for another one to be restored from, which the provider
// makes and which is ordered with the attributes; nil if it is not to be: it is
// another's or elsewhere, is not there, or is not ready. Nobody who asks may learn
// which. A place that was lost is nobody's.
func (r Record) AsSource(provider string, a Attributes) *Source {
	if !r.whole() || r.Provider != provider || r.Attributes.SpaceGUID == "" || !SamePlacement(r.Attributes, a) {
		return nil
	}
	return &Source{Instance: r.Key.Instance, Incarnation: r.Incarnation, Operation: r.Token().Operation}
}

// Stands reports whether the instance is as it was when it was chosen as the
// source. What does not once never does again.
func (s Source) Stands(r Record) bool {
	return r.whole() && r.Incarnation == s.Incarnation && r.Token().Operation == s.Operation
}

// whole reports whether an instance can be restored from.
func (r Record) whole() bool { return r.State == Ready && !r.Unusable && !r.IsBinding() }

// SourceLost is the failure of a provision whose source does not stand.
func SourceLost() Failure {
	return Failure{
		Message: "The service instance to restore from was changed or deleted before this one was restored; " +
			"delete this one, and restore again from one that nobody changes meanwhile.",
		Reclaim: true,
	}
}
