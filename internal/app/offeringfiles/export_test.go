package offeringfiles

// Ship compiles what ships, as Load has it.
func Ship() ([]byte, error) { return ship(checks()) }
