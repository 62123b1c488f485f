package socket

// Stream answers one request for a backup.
var Stream = stream
