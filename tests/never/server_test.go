package never

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom/tests/services"
)

// A server is a PostgreSQL of the test's own, to be stopped, starved and started
// again. It writes each commit to the operating system, not to the disk, which
// is enough to outlive a crash of its own.
type server struct {
	testing.TB
	bin, dir string
	port     int
	owner    *syscall.Credential
	cmd      *exec.Cmd
	log      bytes.Buffer
}

// ownServer starts one, from the programs of the server that the tests have.
func ownServer(t testing.TB) *server {
	t.Helper()
	services.Postgres(t) // or there is none to be had
	s := &server{TB: t, bin: postgresPrograms(t)}
	// The place of a test's files is closed to the user that a server runs as.
	within := ""
	if os.Geteuid() == 0 {
		within = "/tmp"
	}
	var err error
	if s.dir, err = os.MkdirTemp(within, "postroom-never."); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if os.Geteuid() == 0 {
		s.owner = lookUp(t, "postgres")
		s.give(s.dir)
	}
	s.run("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C")
	s.port = freePort(t)
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) dsn() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// postgresPrograms finds where the programs of a server are.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		places = append(places, path)
	}
	slices.Sort(places)
	if len(places) == 0 {
		t.Skip("no initdb: install PostgreSQL on this machine, a server elsewhere can't be stopped by a test")
	}
	return filepath.Dir(places[0])
}

func lookUp(t testing.TB, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Skipf("PostgreSQL refuses to run as root, and there is no user %s: %v", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// give hands what root made to the user that the server runs as.
func (s *server) give(path string) {
	s.Helper()
	if s.owner == nil {
		return
	}
	if err := os.Chown(path, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
		s.Fatal(err)
	}
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	return cmd
}

func (s *server) run(name string, args ...string) {
	s.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start returns when the server answers.
func (s *server) start() {
	s.Helper()
	s.cmd = s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=300", "-c", "fsync=off", "-c", "shared_buffers=32MB")
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := pgx.Connect(s.Context(), s.dsn())
		if err == nil {
			_ = conn.Close(s.Context())
			return
		}
		if time.Now().After(end) {
			s.Fatalf("the server does not answer: %v", err)
		}
	}
}

// kill ends the server and all its sessions as a crash would, in the middle of
// whatever they do.
func (s *server) kill() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait() // it ends by the signal
}

// smallDisk mounts one of so many bytes for the server, where that can be done.
func (s *server) smallDisk(bytes int) (dir string) {
	s.Helper()
	if os.Geteuid() != 0 {
		s.Log("a full disk is NOT tested: only root can mount a small one")
		return ""
	}
	dir = filepath.Join(s.dir, "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=0700", bytes), "tmpfs", dir).CombinedOutput(); err != nil {
		s.Logf("a full disk is NOT tested: a small one can't be mounted here: %v: %s", err, out)
		return ""
	}
	s.Cleanup(func() {
		s.kill()
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			s.Errorf("unmount: %v: %s", err, out)
		}
	})
	s.give(dir)
	return dir
}
