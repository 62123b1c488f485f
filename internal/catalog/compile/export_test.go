package compile

// ViolationsOf is for tests.
var ViolationsOf = violationsOf
