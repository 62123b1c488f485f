package pgserver

// OpenWithin is Open of a server that may take so long to start.
var OpenWithin = open
