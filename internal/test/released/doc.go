// Package released tests that this version goes on with the tables and compiled catalogs that earlier
// releases wrote; data folders are test/e2e's.
package released
