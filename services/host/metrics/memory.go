package metrics

import (
	"os"
	"strconv"
	"strings"
)

// ResidentBytes returns the resident size of this process, now and its maximum so far; 0 if the
// system does not report it.
func ResidentBytes() (now, peak uint64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 || name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kb, _ := strconv.ParseUint(fields[0], 10, 64)
		if name == "VmRSS" {
			now = kb << 10
		} else {
			peak = kb << 10
		}
	}
	return now, peak
}
