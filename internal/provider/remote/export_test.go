package remote

// Tests write and read the messages between the two functions.
type (
	Request = request
	Answer  = answer
	Page    = page
	Fault   = fault
)

const Version = version

var (
	Encode = encode
	Decode = decode
)
