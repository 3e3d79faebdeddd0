package main

// vaultBackupTable has what a backup leaves out, and what a restore checks of one.
var vaultBackupTable = []mutation{
	{
		Name: "backup/batches", File: "backup.go", Run: "TestBackupHasNoShares|TestRestore$", Protects: "a backup brings no tuples back, used or not",
		Old: "strings.HasPrefix(key, batchPrefix) && x.revoke(why) {", New: "strings.HasPrefix(key, batchPrefix) && false {",
	},
	{
		Name: "backup/mac-keys", File: "backup.go", Run: "TestBackupHasNoShares|TestRestore$", Protects: "a backup brings no MAC keys back, which may be burnt since",
		Old: "k.State, k.Reason = MACBurnt, why\n\t\trecord = k", New: "_ = why",
	},
	{
		Name: "backup/epochs", File: "backup.go", Run: "TestBackupHasNoShares|TestRestore$", Protects: "a backup has no keys that make tuples",
		Old: "e.State, e.Reason = EpochRetired, why\n\t\t\t\trecord = e", New: "_ = why",
	},
	{
		Name: "backup/identity", File: "backup.go", Run: "TestRestore$|TestBackupHasNo", Protects: "a restored store is not taken for the one that was lost",
		Old: "if key == headerKey || key == identityKey || ", New: "if key == headerKey || ",
	},
	{
		Name: "backup/authentic", File: "backup.go", Run: "TestBackupOfDamage", Protects: "a backup has nothing that is damaged",
		Old: "if err = errors.Join(err, in.Close()); err != nil {", New: "if err = errors.Join(err, in.Close()); false {",
	},
	{
		Name: "backup/key", File: "backup.go", Run: "TestBackupHasNoShares|TestBackupsHave", Protects: "two backups are not under one key",
		Old: "\trand.Read(key)\n", New: "\t_ = rand.Read\n",
	},
	{
		Name: "restore/blobs", File: "restore.go", Run: "TestRestoreInto", Protects: "a restore overwrites nothing",
		Old: "if len(blobs) > 0 {", New: "if len(blobs) > 0 && false {",
	},
	{
		Name: "restore/records", File: "restore.go", Run: "TestRestoreInto", Protects: "a restore overwrites nothing",
		Old: "return false, fmt.Errorf(\"%w: the store is not empty\", ErrExists)\n\t\t})", New: "return false, nil\n\t\t})",
	},
	{
		Name: "restore/unfinished", File: "examine.go", Run: "TestRestoreAfterACrash", Protects: "a restore that did not end is no vault",
		Old: "case errors.Is(err, ErrNotFound) && v.unfinishedRestore():", New: "case false:",
		Redundant: "it has no header, and whoever opens it alone is told that there is no vault",
	},
	{
		Name: "restore/unfinished-open", File: "vault.go", Run: "TestRestoreAfterACrash", Protects: "a restore that did not end is no vault",
		Old: "if v.unfinishedRestore() {", New: "if false {",
	},
	{
		Name: "restore/frame-length", File: "restore.go", Run: "TestDamagedBackup|TestFrames", Protects: "a frame takes no more memory than it may",
		Old: "if n < gcmOverhead || n > chunkSize+gcmOverhead {", New: "if n < gcmOverhead {",
	},
	{
		Name: "restore/checksum", File: "restore.go", Run: "TestDamagedBackup", Protects: "a damaged frame is told from one that somebody has changed",
		Old:       "if crc32.Checksum(f.buf, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {",
		New:       "if crc32.Checksum(f.buf, castagnoli) != binary.LittleEndian.Uint32(head[4:]) && false {",
		Redundant: "what is damaged does not authenticate",
	},
	{
		Name: "restore/authentic", File: "restore.go", Run: "TestDamagedBackup", Protects: "a frame that does not authenticate is not read",
		Redundant: "nothing comes of such a frame, and a backup that ends there is refused",
		Old:       "\tif err != nil {\n\t\treturn fmt.Errorf(\"%w: frame %d does not authenticate\", ErrBackup, f.index)\n\t}", New: "\tif err != nil {\n\t\tout = nil\n\t}",
	},
	{
		Name: "restore/end", File: "restore.go", Run: "TestBackupWithout", Protects: "a backup that is cut short is no backup",
		Old: "if len(f.out) == 0 && f.last {", New: "if len(f.out) == 0 {",
	},
	{
		Name: "restore/ends", File: "restore.go", Run: "TestDamagedBackup|TestCrafted", Protects: "a backup has nothing after its end",
		Old: "if len(f.out) == 0 && f.last {", New: "if f.last {",
	},
	{
		Name: "restore/appended", File: "restore.go", Run: "TestDamagedBackup", Protects: "a backup has nothing after its end",
		Old: "errors.Is(err, io.EOF) {\n\t\t\treturn nil\n\t\t}\n\t}", New: "err == nil || err != nil {\n\t\t\treturn nil\n\t\t}\n\t}",
	},
	{
		Name: "restore/magic", File: "restore.go", Run: "TestDamagedBackup", Protects: "a backup is of this version",
		Old: "if string(r.head[:len(backupMagic)]) != backupMagic {", New: "if false {",
		Redundant: "every frame is bound to the head, which begins so",
	},
	{
		Name: "restore/missing", File: "restore.go", Run: "TestCrafted", Protects: "a backup has all that it speaks of",
		Old: "if missing {", New: "if missing && false {",
	},
	{
		Name: "restore/kind", File: "restore.go", Run: "TestCrafted", Protects: "a backup has nothing that this program does not know",
		Old: "err = fmt.Errorf(\"%w: an entry of kind %d\", ErrBackup, head[0])", New: "_, err = whole(f)",
	},
	{
		Name: "restore/end-of-nothing", File: "restore.go", Run: "TestCrafted", Protects: "the end of a backup holds nothing",
		Old: "if err := pieces(f, func([]byte) error { return ErrBackup }); err != nil {", New: "if err := pieces(f, func([]byte) error { return nil }); err != nil {",
	},
	{
		Name: "restore/piece", File: "restore.go", Run: "TestCrafted", Protects: "a piece takes no more memory than it may",
		Old: "if n > store.MaxValue {", New: "if false {",
	},
	{
		Name: "restore/one-piece", File: "restore.go", Run: "TestCrafted", Protects: "a record is whole",
		Old: "if content != nil {", New: "if false {",
	},
	{
		Name: "restore/identity", File: "restore.go", Run: "TestCrafted", Protects: "a restored store is not taken for the one that was lost",
		Old: "err != nil || key == headerKey || key == identityKey {", New: "err != nil || key == headerKey {",
	},
	{
		Name: "restore/header", File: "restore.go", Run: "TestCrafted", Protects: "a restored store has the key of the backup's head",
		Old: "err != nil || key == headerKey || key == identityKey {", New: "err != nil || key == identityKey {",
	},
	{
		Name: "restore/record", File: "restore.go", Run: "TestCrafted", Protects: "a record is at its place and opens",
		Old: "err != nil || key == headerKey || key == identityKey {", New: "key == headerKey || key == identityKey {",
	},
	{
		Name: "restore/live", File: "restore.go", Run: "TestCrafted", Protects: "no tuple and no MAC key comes back",
		Old: "if !r.wanted[name] { // of tuples or a MAC key", New: "if name == \"\" { // of tuples or a MAC key",
	},
	{
		Name: "restore/audit", File: "restore.go", Run: "TestRestoreForgets|TestRestore$|TestCrafted", Protects: "a store remembers the audit log, unless an operator says that it is lost",
		Old: "if key == auditKey && r.opt.NewAuditLog {", New: "if key == auditKey {",
	},
	{
		Name: "restore/of-nobody", File: "restore.go", Run: "TestCrafted", Protects: "a blob is of a record",
		Old: "if !r.wanted[name] {\n\t\treturn fmt.Errorf(\"%w: blob", New: "if false {\n\t\treturn fmt.Errorf(\"%w: blob",
	},
	{
		Name: "restore/blob-once", File: "restore.go", Run: "TestCrafted", Protects: "a blob is there once",
		Old: "\tr.wanted[name] = false\n", New: "",
	},
	{
		Name: "restore/quarantine", File: "restore.go", Run: "TestRestore$", Protects: "a restored store does nothing until its operator says so",
		Old: "if objects, err = r.v.quarantine(tx, r.v.newIdentity(), 0, reason, r.opt.KeepDecryption); err != nil {", New: "if err = put(r.v, tx, identityKey, r.v.newIdentity()); err != nil || reason == \"\" {",
	},
	{
		Name: "restore/keeps", File: "restore.go", Run: "TestRestore$", Protects: "keys for decryption come back when an operator says so",
		Old: "r.v.newIdentity(), 0, reason, r.opt.KeepDecryption)", New: "r.v.newIdentity(), 0, reason, true)",
	},
	{
		Name: "restore/mark", File: "restore.go", Run: "TestRestoreAfterACrash", Protects: "a restore that did not end is seen",
		Old: "return tx.Put(restoreKey, []byte{1})", New: "return nil",
	},
	{
		Name: "restore/empties", File: "restore.go", Run: "TestDamagedBackup", Protects: "after an error the store is empty",
		Old: "\tif err != nil && !opt.Check {\n\t\terr = errors.Join(err, r.v.empty())\n\t}", New: "",
	},
	{
		Name: "restore/halved", File: "identity.go", Run: "TestRestore$", Protects: "of decryptions that nobody has counted half are taken as done",
		Old: "if e.Purpose != PurposeThreshold {\n\t\t\t\te.putBack()", New: "if false {\n\t\t\t\te.putBack()",
	},
	{
		Name: "restore/flooding", File: "epoch.go", Run: "TestFloodingAfterRestore", Protects: "no ciphertext is flooded again by a store that does not know of it",
		Old: "case e.Purpose == PurposeThreshold:", New: "case e.Purpose == PurposeThreshold && false:",
	},
	{
		Name: "restore/flooding-retired", File: "identity.go", Run: "TestFloodingUnderNewSharesAfterRestore",
		Protects: "what was answered under new shares is not answered again by a store that does not know of it",
		Old:      "if e.Purpose == PurposeThreshold {\n\t\t\te.putBack()", New: "if e.Purpose == PurposeThreshold && e.State != EpochRetired {\n\t\t\te.putBack()",
	},
	{
		Name: "restore/halves", File: "epoch.go", Run: "TestRestore$", Protects: "of decryptions that nobody has counted half are taken as done",
		Old: "e.Limit = e.Decrypted + (e.Limit-e.Decrypted)/2", New: "e.Limit = e.Decrypted + (e.Limit - e.Decrypted)",
	},
	{
		Name: "restore/epochs", File: "identity.go", Run: "TestRestore$", Protects: "keys for decryption come back, and no others",
		Old: "if keep && e.decrypts() && ", New: "if keep && ",
		Redundant: "a backup says of others that they are retired",
	},
}
