package bench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Machine is where something was measured.
type Machine struct {
	CPU, OS, Arch string
	Features      []string // instructions that the kernels may use
	Path          string   // of the kernels
	CPUs          int
	GOMAXPROCS    int
	Go, Lattigo   string
	Memory, Load  string // of the system; "" where it does not say
}

// ThisMachine describes the machine, now.
func ThisMachine() Machine {
	m := Machine{
		CPU: runtime.GOARCH, OS: runtime.GOOS, Arch: runtime.GOARCH, Path: kernel.Selected().String(),
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version(), Lattigo: "unknown",
		Memory: property("/proc/meminfo", "MemTotal"),
	}
	if name := property("/proc/cpuinfo", "model name"); name != "" {
		m.CPU = name
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(b), " ")
	}
	if runtime.GOARCH == "amd64" {
		for _, f := range []struct {
			name string
			has  bool
		}{
			{"avx2", cpu.X86.HasAVX2}, {"bmi2", cpu.X86.HasBMI2}, {"avx512f", cpu.X86.HasAVX512F}, {"avx512dq", cpu.X86.HasAVX512DQ},
			{"avx512vl", cpu.X86.HasAVX512VL}, {"avx512ifma", cpu.X86.HasAVX512IFMA}, {"aes", cpu.X86.HasAES},
		} {
			if f.has {
				m.Features = append(m.Features, f.name)
			}
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if strings.HasPrefix(d.Path, "github.com/tuneinsight/lattigo/") {
				m.Lattigo = d.Version
			}
		}
	}
	return m
}

// property is the first value of a name in a file of lines "name: value", or "".
func property(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Lines are the properties with their names.
func (m Machine) Lines() [][2]string {
	lines := [][2]string{
		{"CPU", fmt.Sprintf("%s, %d CPUs, %s/%s", m.CPU, m.CPUs, m.OS, m.Arch)},
		{"features", strings.Join(m.Features, " ")},
		{"kernels", m.Path},
		{"GOMAXPROCS", fmt.Sprint(m.GOMAXPROCS)},
		{"versions", m.Go + ", Lattigo " + m.Lattigo},
	}
	if m.Memory != "" {
		lines = append(lines, [2]string{"memory", m.Memory})
	}
	if m.Load != "" {
		lines = append(lines, [2]string{"load", m.Load + " when it began: what else ran on the machine"})
	}
	return lines
}

// Line is the same in one line.
func (m Machine) Line() string {
	line := fmt.Sprintf("Machine: %s, %d CPUs, %s/%s, kernels %s, %s, Lattigo %s", m.CPU, m.CPUs, m.OS, m.Arch, m.Path, m.Go, m.Lattigo)
	if m.Load != "" {
		line += ", load average " + m.Load + " at the start"
	}
	return line
}
