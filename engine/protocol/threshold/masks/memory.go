package masks

// MemoryBytes estimates the bytes that a run needs at one party: transfers, keys and messages for
// every peer, and the party's own records, as words and packed. It adds the same again for garbage
// that is not yet collected.
func MemoryBytes(k Kind, parties, records int) int64 {
	transfers := int64(k.transfers()) * int64(records+64)
	words := int64(k.planes()+len(k.widths())) * 8 * int64(records+64)
	return 2 * (48*transfers*int64(parties-1) + words)
}
