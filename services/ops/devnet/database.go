package devnet

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// In containers the parties' stores may be in PostgreSQL: one server with a role and a database for
// each party, to which the other parties' roles cannot connect. The server's image runs the script
// only when it creates the database directory. The script contains no passwords, only the verifiers
// with which the server checks them.

// The directories of the server: its initialisation script, and its data.
const (
	beginDir    = "postgres-init"
	databaseDir = "postgres"
)

// DatabaseUser is the user that runs the server in the image postgres:15.
const DatabaseUser = 999

// database writes the server's initialisation script, and each party's connection string. The
// superuser's password is random and not stored elsewhere: the image requires one.
func (w *writer) database(parties int) {
	var script strings.Builder
	script.WriteString("-- Written by `lodge compose init`: a role and a database for each party, closed to the others.\n")
	script.WriteString("REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC;\n")
	for i := range parties {
		name, password := partyName(i), rand.Text()
		verifier, err := scram(password)
		w.do(func() error { return err })
		fmt.Fprintf(&script, "\nCREATE ROLE %s LOGIN PASSWORD '%s';\n", name, verifier)
		fmt.Fprintf(&script, "CREATE DATABASE %[1]s OWNER %[1]s TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';\n", name)
		fmt.Fprintf(&script, "REVOKE ALL ON DATABASE %s FROM PUBLIC;\n", name)
		dsn := fmt.Sprintf("host=postgres user=%[1]s dbname=%[1]s password=%[2]s sslmode=disable\n", name, password)
		w.file(name+"/"+dsnFile, []byte(dsn))
	}
	w.file(beginDir+"/lodge.sql", []byte(script.String()))
	w.file(beginDir+"/password", []byte(rand.Text()))
}

const dsnFile = "postgres.dsn"

// scram returns the verifier of a password for SCRAM-SHA-256 (RFC 5803), which PostgreSQL stores
// and accepts instead of the password.
func scram(password string) (string, error) {
	const rounds = 4096 // PostgreSQL's default
	salt := make([]byte, 16)
	rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(what string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(what))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(mac("Server Key"))), nil
}
