// Command lodge runs every part of Lodge: party, coordinator, demo, verify and the parameter registry.
package main

func main() {}
