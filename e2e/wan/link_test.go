//go:build wan

// Package wan tests a cluster across wide-area links. Every process is in its own network
// namespace. Its only link to the others has a delay, a rate and a queue, may lose packets, and can
// be cut.
package wan

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mtu = 1500 // as on most wide-area paths
	// tick is the interval at which packets are delivered. Waking up for each packet would use more
	// CPU time than everything else here.
	tick = 2 * time.Millisecond
)

// conditions of a link, the same in both directions.
type conditions struct {
	delay time.Duration // one way
	rate  float64       // bits per second
	queue time.Duration // maximum time that a packet waits before it is dropped
	// runs lets the kernel pass packets of a connection in runs of up to 64 KiB, which is much
	// cheaper. A run is queued, sent and lost as a whole, so do not use it with packet loss.
	runs bool
}

// header is the kernel's header of a packet or a run: struct virtio_net_hdr.
const header = 10

// wire returns the bytes that a packet or a run needs on the link, including a header for each
// packet.
func wire(p []byte) int {
	n, each := len(p)-header, int(binary.NativeEndian.Uint16(p[4:]))
	if p[1] == unix.VIRTIO_NET_HDR_GSO_NONE || each == 0 {
		return n
	}
	ip := 4 * int(p[header]&15)
	headers := ip + 4*int(p[header+ip+12]>>4)
	return n + ((n-headers+each-1)/each-1)*headers
}

// link joins a node to the hub, where packets are routed.
type link struct {
	up, down pipe // from the node and to the node
}

// pipe is one direction of a link.
type pipe struct {
	conditions
	from, to *os.File
	loss     atomic.Uint64 // lost packets per 2^32 packets
	cut      atomic.Bool

	sent, dropped atomic.Int64 // bytes sent, including IP headers; packets dropped

	mu   sync.Mutex
	free time.Time // when the last packet leaves
}

// newLink creates a namespace with this name, with one interface there and one here. Their
// addresses are 10.77.i.2 and 10.77.i.1.
func newLink(namespace string, i int, c conditions) (*link, error) {
	if out, err := exec.Command("ip", "netns", "add", namespace).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", namespace, err, out)
	}
	subnet := "10.77." + strconv.Itoa(i)
	here, err := tun("", c.runs, "wan"+strconv.Itoa(i), subnet+".1/24")
	if err != nil {
		return nil, err
	}
	there, err := tun("/run/netns/"+namespace, c.runs, "wan", subnet+".2/24", "link set lo up", "route add default via "+subnet+".1")
	if err != nil {
		return nil, err
	}
	l := &link{up: pipe{conditions: c, from: there, to: here}, down: pipe{conditions: c, from: here, to: there}}
	l.up.start()
	l.down.start()
	return l, nil
}

// close removes the interfaces, so that the next test can make others of the same names.
func (l *link) close() {
	l.up.from.Close()
	l.up.to.Close()
}

// tun creates an interface in the given or the current namespace, and runs additional ip commands
// there.
func tun(namespace string, runs bool, name, address string, more ...string) (f *os.File, err error) {
	done := make(chan struct{})
	go func() { // the thread ends with its namespace
		defer close(done)
		runtime.LockOSThread()
		if namespace != "" {
			var ns *os.File
			if ns, err = os.Open(namespace); err != nil {
				return
			}
			defer ns.Close()
			if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return
			}
		} else {
			defer runtime.UnlockOSThread()
		}
		f, err = openTun(name, runs)
		if err == nil && namespace != "" { // independent of this machine's default
			err = os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(*congestion), 0o600)
		}
		if err == nil && runs { // allow long runs
			err = os.WriteFile("/proc/sys/net/ipv4/tcp_min_tso_segs", []byte("30"), 0o600)
		}
		commands := append([]string{"addr add " + address + " dev " + name, fmt.Sprintf("link set %s mtu %d txqueuelen 1000 up", name, mtu)}, more...)
		for _, c := range commands {
			if err == nil {
				err = ip(c)
			}
		}
	}()
	<-done
	return f, err
}

func openTun(name string, runs bool) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var request [40]byte // struct ifreq: a name, then flags
	copy(request[:unix.IFNAMSIZ-1], name)
	*(*uint16)(unsafe.Pointer(&request[unix.IFNAMSIZ])) = unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF, uintptr(unsafe.Pointer(&request[0]))); e != 0 {
		unix.Close(fd)
		return nil, e
	}
	if runs {
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4); err != nil {
			unix.Close(fd)
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func ip(command string) error {
	out, err := exec.Command("sh", "-c", "exec ip "+command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, out)
	}
	return nil
}

type packet struct {
	due  time.Time
	data []byte
}

// start forwards packets until the interfaces are closed.
func (p *pipe) start() {
	due := make(chan packet, 1<<14)
	go func() {
		for x := range due {
			time.Sleep(time.Until(x.due.Truncate(tick).Add(tick)))
			_, _ = p.to.Write(x.data) // as on any link, undeliverable packets are lost
		}
	}()
	go func() {
		defer close(due)
		buf := make([]byte, header+1<<16)
		for {
			n, err := p.from.Read(buf)
			if err != nil {
				return
			}
			if n < header {
				continue
			}
			leaves, ok := p.admit(wire(buf[:n]), time.Now())
			if !ok {
				p.dropped.Add(1)
				continue
			}
			select {
			case due <- packet{leaves.Add(p.delay), append([]byte(nil), buf[:n]...)}:
			default:
				p.dropped.Add(1)
			}
		}
	}()
}

// admit returns the time when a packet of n bytes has been sent, unless it is lost.
func (p *pipe) admit(n int, now time.Time) (leaves time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free
	if free.Before(now) {
		free = now
	}
	if p.cut.Load() || uint64(rand.Uint32()) < p.loss.Load() || free.Sub(now) > p.queue {
		return free, false
	}
	p.free = free.Add(time.Duration(float64(n) * 8 / p.rate * float64(time.Second)))
	p.sent.Add(int64(n))
	return p.free, true
}

// use is the traffic that a pipe has carried.
type use struct {
	at    time.Time
	bytes int64
}

func (p *pipe) use() use { return use{time.Now(), p.sent.Load()} }

// busy returns the fraction of the time since then in which the pipe was sending.
func (p *pipe) busy(since use) float64 {
	now := p.use()
	return float64(now.bytes-since.bytes) * 8 / p.rate / now.at.Sub(since.at).Seconds()
}

// lose makes both directions lose a fraction of their packets.
func (l *link) lose(part float64) {
	l.up.loss.Store(uint64(part * (1 << 32)))
	l.down.loss.Store(uint64(part * (1 << 32)))
}

// cut makes both directions lose all packets, or ends that.
func (l *link) cut(yes bool) {
	l.up.cut.Store(yes)
	l.down.cut.Store(yes)
}
