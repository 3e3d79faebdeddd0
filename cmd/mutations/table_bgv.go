package main

// Packages that deal with seeds and complaints.
var dealing = []string{"./engine/protocol/threshold/keygen", "./engine/protocol/threshold/bgvkeys"}
