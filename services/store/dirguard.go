package store

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// guarded calls bbolt. A panic, or a fault on a page of the mapped file that cannot be read, is
// damage: it becomes an error that wraps ErrDamaged, after which the store reads and writes nothing
// more.
func (d *directory) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = d.damage(damagedf("%s: %v", d.records, p))
		}
	}()
	return f()
}

// readable calls a caller's function, which reads values of the mapped file. A fault there is
// damage; any other panic is the caller's own.
func readable(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if fault, ok := p.(interface {
			runtime.Error
			Addr() uintptr
		}); ok {
			err = damagedf("a stored value cannot be read: %v", fault)
			return
		}
		panic(p)
	}()
	return f()
}

// damage records an error that wraps ErrDamaged, and returns it. Other errors stay as they are.
func (d *directory) damage(err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !errors.Is(d.fault, ErrDamaged) {
		d.fault = err
	}
	return err
}

// intact returns the damage that was found, or looks at the meta pages. bbolt panics with its locks
// held when neither is whole, and whoever waits for them would wait for ever.
func (d *directory) intact() error {
	d.mu.Lock()
	fault := d.fault
	d.mu.Unlock()
	if errors.Is(fault, ErrDamaged) {
		return fault
	}
	var b [pageHeader + metaSize]byte
	for page := range 2 {
		_, err := d.raw.ReadAt(b[:], int64(page*d.pageSize))
		if err == nil && sound(b[:]) || errors.Is(err, os.ErrClosed) { // bbolt says that it is closed
			return nil
		}
	}
	return d.damage(damagedf("%s: neither of its two meta pages is whole", d.records))
}

// closeDB closes the database. After damage a lock of bbolt may be held for ever, so it is left to
// the end of the process.
func (d *directory) closeDB() error {
	if d.db == nil || d.stuck {
		return nil
	}
	if err := d.guarded(d.db.Close); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
