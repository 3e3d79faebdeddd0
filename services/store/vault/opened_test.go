package vault

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// fill sets everything in a value to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	}
}

// apart fails where two values share memory.
func apart(t *testing.T, path string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		apart(t, path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() {
				apart(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
			}
		}
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		fallthrough
	case reflect.Array:
		for i := range a.Len() {
			apart(t, fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		for _, key := range a.MapKeys() {
			apart(t, fmt.Sprintf("%s[%v]", path, key), a.MapIndex(key), b.MapIndex(key))
		}
	}
}

// Readers cannot change a cached record.
func TestClonesAreApart(t *testing.T) {
	t.Parallel()
	e, b, id := &keys.Epoch{}, &stock.Batch{}, &seal.Identity{}
	for _, x := range []any{e, b, id} {
		fill(reflect.ValueOf(x).Elem())
	}
	for _, x := range [][2]any{{e, e.Clone()}, {b, b.Clone()}, {id, id.Clone()}} {
		apart(t, reflect.TypeOf(x[0]).String(), reflect.ValueOf(x[0]), reflect.ValueOf(x[1]))
		if !reflect.DeepEqual(x[0], x[1]) {
			t.Errorf("%+v, and its clone %+v", x[0], x[1])
		}
	}
}

// A cached record is decrypted again if the stored bytes have changed, and never returned for
// another key.
func TestOpenedRecords(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	addThreshold(t, v, 2)
	first, err := v.Epoch(1)
	must(t, err)
	is := first.Members[0][0]
	for range 3 {
		e, err := v.Epoch(1)
		if must(t, err); e.Members[0][0] != is {
			t.Error("a reader has changed the record of others")
		}
		e.Members[0][0]++ // whoever reads a record may change it
	}
	must(t, v.RecordThreshold(runOf(1, 0, 3)))
	if now, err := v.Epoch(1); err != nil || now.Answered != 3 {
		t.Errorf("%+v, %v", now, err)
	}
	read := func(key string) []byte {
		var out []byte
		must(t, v.Backend.View(func(tx store.Tx) error {
			b, err := tx.Get(key)
			out = bytes.Clone(b)
			return err
		}))
		return out
	}
	good := read(keys.EpochKey(1))
	spoilt := bytes.Clone(good)
	spoilt[len(spoilt)-1]++
	for name, bad := range map[string][]byte{"spoilt": spoilt, "of another epoch": read(keys.EpochKey(2)), "empty": {}} {
		must(t, v.Update(func(tx store.Tx) error { return tx.Put(keys.EpochKey(1), bad) }))
		if _, err := v.Epoch(1); !errors.Is(err, vaulterr.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, v.Update(func(tx store.Tx) error { return tx.Put(keys.EpochKey(1), good) }))
	if now, err := v.Epoch(1); err != nil || now.Answered != 3 {
		t.Errorf("%+v, %v", now, err)
	}
	for i := range 2 * seal.MaxOpened {
		seal.KeepOpen(&v.Opened, fmt.Sprint(i), []byte{1}, &keys.Epoch{})
	}
	if n := len(v.Opened.All); n > seal.MaxOpened {
		t.Errorf("%d records are kept", n)
	}
}
