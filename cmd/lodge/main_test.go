package main

// The test kit runs the whole program, including the commands of this package.
func init() { newLodge = rootCommand }
