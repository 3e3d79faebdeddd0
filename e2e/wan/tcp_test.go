//go:build wan

package wan

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lodge-mpc/lodge/e2e/outside"
)

// inside calls f in a network namespace. Sockets created by f belong to that namespace.
func inside(t *testing.T, namespace string, f func()) {
	t.Helper()
	done := make(chan error)
	go func() { // the thread ends with its namespace
		runtime.LockOSThread()
		ns, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	outside.Must(t, <-done)
}

// TestTCP sends from each of three nodes to both others at the full speed of TCP, and prints the
// utilisation of the links, an upper bound for any protocol.
func TestTCP(t *testing.T) {
	outside.Must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	address := func(i int) string { return "10.77." + strconv.Itoa(i) + ".2:9000" }
	names := make([]string, parties)
	var links []*link
	for i := range parties {
		names[i] = *prefix + "-" + strconv.Itoa(i)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", names[i]).Run() })
		l, err := newLink(names[i], i, conditions{delay: *round / 4, rate: *rate, queue: *queue, runs: true})
		outside.Must(t, err)
		t.Cleanup(l.close)
		links = append(links, l)
		inside(t, names[i], func() {
			listener, err := net.Listen("tcp", address(i))
			outside.Must(t, err)
			t.Cleanup(func() { listener.Close() })
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					go io.Copy(io.Discard, c)
				}
			}()
		})
	}
	for i := range parties {
		for j := range parties {
			if i == j {
				continue
			}
			inside(t, names[i], func() {
				c, err := net.Dial("tcp", address(j))
				outside.Must(t, err)
				t.Cleanup(func() { c.Close() })
				go func() {
					for piece := make([]byte, 1<<16); ; {
						if _, err := c.Write(piece); err != nil {
							return
						}
					}
				}()
			})
		}
	}
	time.Sleep(10 * time.Second) // until the rate is stable
	var since []use
	for _, l := range links {
		since = append(since, l.up.use(), l.down.use())
	}
	time.Sleep(30 * time.Second)
	for i, l := range links {
		t.Logf("node %d: sends %.1f%% of the time at %.0f Mbit/s, receives %.1f%%", i, 100*l.up.busy(since[2*i]), *rate/1e6, 100*l.down.busy(since[2*i+1]))
	}
}
