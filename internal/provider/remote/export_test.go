package remote

// Tests read the answers of the function inside.
type Answer = answer

const Version = version

var Decode = decode
