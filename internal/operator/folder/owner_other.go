//go:build !unix

package folder

// giveToOwner does nothing: here, a file belongs to the owner of its folder.
func giveToOwner(string) {}
