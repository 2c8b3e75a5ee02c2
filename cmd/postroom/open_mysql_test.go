package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAMySQLURLSaysAllThatTheDriverNeeds(t *testing.T) {
	for raw, want := range map[string]string{
		"mysql://app:s3cret@db:3307/shop":       "app:s3cret@tcp(db:3307)/shop",
		"mariadb://app@db/shop":                 "app@tcp(db:3306)/shop",
		"mysql://db/shop":                       "tcp(db:3306)/shop",
		"mysql:///shop":                         "tcp(127.0.0.1:3306)/shop",
		"mysql://[::1]/shop":                    "tcp([::1]:3306)/shop",
		"mysql://a%40b:p%2F%40%3A%28@db/my%20x": "a@b:p/@:(@tcp(db:3306)/my%20x",
		"mysql://app@/shop?socket=/run/my.sock": "app@unix(/run/my.sock)/shop",
		"mysql://app@localhost/shop?socket=%2Frun%2Fmy.sock&parseTime=true": "app@unix(/run/my.sock)/shop?parseTime=true",
		// The driver's own, and those of the session, are passed on.
		"mysql://db/shop?timeout=3s&loc=Europe/Berlin&clientFoundRows=true": "tcp(db:3306)/shop?clientFoundRows=true&loc=Europe%2FBerlin",
		"mysql://db/shop?time_zone=%27Europe/Berlin%27&sql_mode=ANSI":       "tcp(db:3306)/shop?sql_mode=ANSI&time_zone=%27Europe%2FBerlin%27",
		"mysql://db/shop?charset=utf8mb4,utf8":                              "tcp(db:3306)/shop?charset=utf8mb4,utf8",
	} {
		config, err := mysqlConfig(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if config.Timeout <= 0 {
			t.Errorf("%s: connecting takes for ever", raw)
		}
		config.Timeout = 0
		if got := config.FormatDSN(); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestTLSOfAMySQLURLVerifiesWhatItSays(t *testing.T) {
	type verdict struct {
		on, chain, name, fallback bool
	}
	for query, want := range map[string]verdict{
		"":                         {},
		"tls=false":                {},
		"tls=true":                 {on: true, chain: true, name: true},
		"tls=skip-verify":          {on: true},
		"tls=preferred":            {on: true, fallback: true},
		"ssl-mode=disabled":        {},
		"ssl-mode=PREFERRED":       {on: true, fallback: true},
		"ssl-mode=REQUIRED":        {on: true},
		"ssl-mode=VERIFY_CA":       {on: true, chain: true},
		"ssl-mode=VERIFY_IDENTITY": {on: true, chain: true, name: true},
	} {
		config, err := mysqlConfig("mysql://db.example/shop?" + query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		var got verdict
		if c := config.TLS; c != nil {
			got = verdict{true, !c.InsecureSkipVerify || c.VerifyConnection != nil, !c.InsecureSkipVerify, config.AllowFallbackToPlaintext}
			if got.name && c.ServerName != "db.example" {
				t.Errorf("%s: the name of the server is %q", query, c.ServerName)
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", query, got, want)
		}
	}
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for query, says := range map[string]string{
		"ssl-ca=/nowhere.pem": "nowhere", "ssl-ca=" + empty: "no certificate", "ssl-cert=/nowhere.pem": "ssl-key",
		"tls=true&ssl-mode=REQUIRED": "either", "ssl-mode=sure": "VERIFY_CA", "socket=/s": "leave out the host", "parseTime": "no value",
	} {
		if _, err := mysqlConfig("mysql://db.example/shop?" + query); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", query, err, says)
		}
	}
}

func TestParametersOfAMySQLURLReachTheServer(t *testing.T) {
	db := freshMariaDB(t) + "?time_zone=%27-03:00%27&innodb_lock_wait_timeout=7"
	var zone string
	var wait int
	if err := inStore(t, db).db.QueryRowContext(t.Context(), "SELECT @@time_zone, @@innodb_lock_wait_timeout").Scan(&zone, &wait); err != nil {
		t.Fatal(err)
	}
	if zone != "-03:00" || wait != 7 {
		t.Errorf("time zone %s, wait %d", zone, wait)
	}
	// The schema of the flag stands in for the database of the URL.
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path, u.RawQuery = "", ""
	must(t, "migrate", "--db", u.String(), "--schema", name)
	must(t, "migrate", "--db", db, "--check")
}

func TestThePrintedMySQLSchemaIsUpToDateAndEnoughForTheGrantedRole(t *testing.T) {
	fresh := freshMariaDB(t)
	store := inStore(t, fresh+"?multiStatements=true")
	run := func(db *sql.DB, text string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for range 2 {
		run(store.db, must(t, "schema", "--db", fresh))
	}
	must(t, "migrate", "--db", fresh, "--check")
	role := "cli_" + fresh[len(fresh)-8:]
	run(store.db, "CREATE USER "+role+" IDENTIFIED BY 's3cret'")
	t.Cleanup(func() { dropUser(t, fresh, role) })
	run(store.db, must(t, "schema", "--dialect", "mysql", "--grants", role))
	u, err := url.Parse(fresh)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "s3cret")
	finish(t, inStore(t, u.String()), "orders", 2)
	if got := must(t, "stats", "--db", u.String()); strings.Contains(got, "s3cret") || !strings.Contains(got, "orders") {
		t.Errorf("%s", got)
	}
}

// selfSigned writes a certificate for a name, and its key, where a server that
// runs as another user can read them.
func selfSigned(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o644); err != nil { //nolint:gosec // of this test only
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLSToARealMariaDBIsVerified(t *testing.T) {
	service(t, "MARIADB")                             // skips where there is none
	dir, err := os.MkdirTemp("/tmp", "postroom-tls-") // a server of another user can't look into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the server must read it
		t.Fatal(err)
	}
	stranger, _ := selfSigned(t, dir, "stranger.example")
	for name, verdicts := range map[string]map[string]bool{
		"127.0.0.1":      {"VERIFY_IDENTITY": true, "VERIFY_CA": true, "REQUIRED": true},
		"db.example.org": {"VERIFY_IDENTITY": false, "VERIFY_CA": true, "REQUIRED": true},
	} {
		t.Run(name, func(t *testing.T) {
			cert, key := selfSigned(t, dir, name)
			db := freshOnMySQL(t, ownServer(t, "MARIADB", "--ssl-cert="+cert, "--ssl-key="+key))
			must(t, "migrate", "--db", db)
			for mode, want := range verdicts {
				if got := call(t, "stats", "--db", db+"?ssl-mode="+mode+"&ssl-ca="+url.QueryEscape(cert)); (got.status == exitOK) != want {
					t.Errorf("%s: exit status %d, %s", mode, got.status, got.err)
				}
				if got := call(t, "stats", "--db", db+"?ssl-mode="+mode+"&ssl-ca="+url.QueryEscape(stranger)); (got.status == exitOK) != (mode == "REQUIRED") {
					t.Errorf("%s of a stranger: exit status %d, %s", mode, got.status, got.err)
				}
			}
			if got := call(t, "stats", "--db", db+"?tls=true"); got.status != exitFailure || !strings.Contains(got.err, "certificate") {
				t.Errorf("tls=true with a certificate of nobody: exit status %d, %s", got.status, got.err)
			}
			must(t, "stats", "--db", db+"?tls=skip-verify")
			var cipher, ignored string
			if err := inStore(t, db+"?ssl-ca="+url.QueryEscape(cert)+"&ssl-mode=REQUIRED").db.QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&ignored, &cipher); err != nil || cipher == "" {
				t.Errorf("cipher %q, %v", cipher, err)
			}
		})
	}
}
