package lifecycle

// A Source is the instance that a provision restores from, as it was when it was chosen. It is of the same platform.
type Source struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
	// Operation is the instance's last operation when it was chosen; an update or a deletion changes it.
	Operation string `json:"operation,omitempty"`
}

// Key returns the key of the source, on the platform of the instance that is restored.
func (s Source) Key(restored Key) Key { return Key{Platform: restored.Platform, Instance: s.Instance} }

// AsSource returns the instance as a source for another instance of the provider that is
// ordered with the attributes. It is nil if this instance is missing, not ready, of another
// provider, or in another or a lost place. The asker is not told which.
func (r Record) AsSource(provider string, a Attributes) *Source {
	if !r.whole() || r.Provider != provider || r.Attributes.SpaceGUID == "" || !SamePlacement(r.Attributes, a) {
		return nil
	}
	return &Source{Instance: r.Key.Instance, Incarnation: r.Incarnation, Operation: r.Token().Operation}
}

// Stands reports whether the source is unchanged since it was chosen. Once it has
// changed, it never stands again.
func (s Source) Stands(r Record) bool {
	return r.whole() && r.Incarnation == s.Incarnation && r.Token().Operation == s.Operation
}

// whole reports whether an instance can be restored from.
func (r Record) whole() bool { return r.State == Ready && !r.Unusable && !r.IsBinding() }

// SourceLost returns the failure of a provision whose source has changed.
func SourceLost() Failure {
	return Failure{
		Message: "The service instance to restore from was changed or deleted before this one was restored; " +
			"delete this one, and restore again from one that nobody changes meanwhile.",
		Reclaim: true,
	}
}
