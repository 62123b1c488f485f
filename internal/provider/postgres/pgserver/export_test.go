package pgserver

// OpenWithin is Open with another startWait.
var OpenWithin = open
