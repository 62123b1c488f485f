// Command bench compares Longshore with a broker made of brokerapi and a map, on one machine and in
// one run: handler against handler inside one process, and process against process over loopback.
// Rounds alternate between the two, so that other work on the machine affects both; every ratio is
// taken within a round. The status of every answer is checked.
package main
