package remote

// What stands between the two functions, for tests.
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
