// Package pages tests the console of a real cluster for long and with many open pages: how much
// history it keeps, and how much open pages slow a batch. Its tests have the build tag pages; run
// them with make console-soak and make console-load.
package pages
