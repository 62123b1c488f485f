package principal

// Page has the inventory read pages of so many.
func (k *Keeper) Page(most int) { k.page = most }
