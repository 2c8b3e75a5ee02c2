package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func openMySQL(d *database, _ bool) (*sql.DB, error) {
	config, err := mysqlConfig(d.URL)
	if err != nil {
		return nil, err
	}
	if config.DBName == "" && d.Schema == "" {
		return nil, usagef("--db %s: the name of the database is missing, as in mysql://user@host/db; or give --schema", d.URL)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, usagef("--db: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// mysqlConfig makes of a URL what the driver calls a DSN. Parameters that are not
// ours are the driver's, and those that are not its own either are variables of
// the session.
func mysqlConfig(raw string) (*mysql.Config, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	if u.Opaque != "" || !strings.Contains(raw, "://") {
		return nil, usagef("database %q: two slashes are missing, as in mysql://user@host/db", raw)
	}
	own, rest, err := mysqlParameters(u.RawQuery)
	if err != nil {
		return nil, err
	}
	config, err := mysql.ParseDSN("/?" + rest)
	if err != nil {
		return nil, usagef("--db: parameters: %w (tls is true, false, skip-verify or preferred; for a certificate of your own give ssl-ca)", err)
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	if config.DBName = strings.TrimPrefix(u.Path, "/"); strings.Contains(config.DBName, "/") {
		return nil, usagef("--db: %q is not the name of a database", config.DBName)
	}
	config.Net, config.Addr, err = mysqlAddress(u, own["socket"])
	if err != nil {
		return nil, err
	}
	if config.TLS != nil {
		config.TLS.ServerName = u.Hostname() // the driver has not seen the host yet
	}
	if err := mysqlTLS(config, u.Hostname(), own); err != nil {
		return nil, err
	}
	if config.Timeout == 0 {
		config.Timeout = connectTime
	}
	// The driver's own lines would come between those of this program.
	config.Logger = &mysql.NopLogger{}
	return config, nil
}

// mysqlParameters takes what the driver does not know out of the parameters.
// What is left stays encoded as it is.
func mysqlParameters(query string) (own map[string]string, rest string, err error) {
	own = map[string]string{}
	var others []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, found := strings.Cut(part, "=")
		switch name {
		case "":
		case "socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key":
			if own[name], err = url.QueryUnescape(value); err != nil {
				return nil, "", usagef("--db: parameter %s: %w", name, err)
			}
		default:
			if !found {
				return nil, "", usagef("--db: parameter %s has no value", name)
			}
			// The driver looks for the last slash to find the database.
			others = append(others, strings.ReplaceAll(part, "/", "%2F"))
		}
	}
	return own, strings.Join(others, "&"), nil
}

func mysqlAddress(u *url.URL, socket string) (network, address string, err error) {
	if socket != "" {
		if u.Host != "" && u.Hostname() != "localhost" {
			return "", "", usagef("--db: a socket is on this machine: leave out the host %s", u.Host)
		}
		return "unix", socket, nil
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "3306"
	}
	return "tcp", net.JoinHostPort(host, port), nil
}

// mysqlTLS understands the names that MySQL's own programs have for this, beside
// the driver's tls.
func mysqlTLS(config *mysql.Config, host string, own map[string]string) error {
	mode := strings.ToUpper(own["ssl-mode"])
	files := own["ssl-ca"] != "" || own["ssl-cert"] != "" || own["ssl-key"] != ""
	switch {
	case mode == "" && !files:
		return nil
	case config.TLS != nil || config.TLSConfig != "":
		return usagef("--db: give either tls, or ssl-mode, ssl-ca, ssl-cert and ssl-key")
	case mode == "" && own["ssl-ca"] != "":
		mode = "VERIFY_IDENTITY"
	case mode == "":
		mode = "REQUIRED"
	}
	settings := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if err := mysqlCertificates(settings, own); err != nil {
		return err
	}
	switch mode {
	case "DISABLED":
		if files {
			return usagef("--db: ssl-mode DISABLED, and certificates all the same")
		}
		return nil
	case "PREFERRED":
		config.AllowFallbackToPlaintext = true
		settings.InsecureSkipVerify = true
	case "REQUIRED":
		settings.InsecureSkipVerify = true
	case "VERIFY_CA":
		// Everything but the name is verified.
		settings.InsecureSkipVerify = true
		settings.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, settings.RootCAs) }
	case "VERIFY_IDENTITY":
	default:
		return usagef("--db: ssl-mode %s: use DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY", own["ssl-mode"])
	}
	config.TLS = settings
	return nil
}

func mysqlCertificates(settings *tls.Config, own map[string]string) error {
	if path := own["ssl-ca"]; path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--db: ssl-ca: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--db: ssl-ca: %s has no certificate in PEM form", path)
		}
	}
	if own["ssl-cert"] == "" && own["ssl-key"] == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(own["ssl-cert"], own["ssl-key"])
	if err != nil {
		return fmt.Errorf("--db: ssl-cert and ssl-key: %w", err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return nil
}

func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server sent no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: time.Now()})
	return err
}
