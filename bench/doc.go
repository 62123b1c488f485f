// Command bench compares Longshore with a broker made of brokerapi and a map,
// on one machine and in one run: inside one process handler against handler,
// and over loopback process against process. Rounds alternate between the two,
// so that what the machine does meanwhile meets both; every ratio is taken
// within a round. Every answer's status is checked.
package main
