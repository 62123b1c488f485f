package files

// Hold keeps all changes of this process waiting until it is released.
func (f *Folder) Hold() (release func()) {
	f.turn <- struct{}{}
	return func() { <-f.turn }
}
