package osb

var APIVersion = apiVersion
