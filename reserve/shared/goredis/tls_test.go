package goredis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// certificate writes a key and a certificate of 127.0.0.1 that has signed itself, and returns the pool that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, trusted *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	require.NoError(t, os.WriteFile(certFile, certText, 0o600))
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	require.NoError(t, os.WriteFile(keyFile, keyText, 0o600))
	trusted = x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(certText))
	return certFile, keyFile, trusted
}

// Over TLS, by RESP3, a user with the rights that the documentation names, and no others, can do all that a limiter
// does. A right less is shown to every caller, and no fallback hides it.
func TestTLSAndLeastRights(t *testing.T) {
	cert, key, trusted := certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	require.NoError(t, l.Close())
	s := server.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no")
	admin := connect(t, s)
	user := func(name string, protocol int) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Username: name, Password: "secret", Protocol: protocol,
			DisableIdentity: true, ContextTimeoutEnabled: true, TLSConfig: &tls.Config{RootCAs: trusted}})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	rights := []any{"~pace:*", "+eval", "+evalsha", "+get", "+set", "+time"}
	set := func(name string, rights ...any) {
		require.NoError(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER", name, "on", ">secret", "+hello"}, rights...)...).Err())
	}
	set("limiter", rights...)
	for _, protocol := range []int{2, 3} {
		c := user("limiter", protocol)
		require.Error(t, c.Do(t.Context(), "DEL", "pace:{other}").Err(), "it may do nothing else")
		l := newShared(t, c, "tls", reserve.Must(pace.Bursty(0.01, pace.WithCapacity(10))))
		require.NoError(t, l.Reset(t.Context()))
		r, err := l.Reserve(t.Context(), 15)
		require.NoError(t, err)
		r.Settle(12)
		r2, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		r2.Cancel()
		shot, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.InDelta(t, -2, shot.Level, 1)
	}
	for i := range rights {
		less := append([]any{}, rights[:i]...)
		less = append(less, rights[i+1:]...)
		name := strings.Trim(rights[i].(string), "~:*+")
		set(name, less...)
		require.NoError(t, admin.ScriptFlush(t.Context()).Err())
		l := newShared(t, user(name, 3), "without "+name, reserve.Must(pace.Bursty(10)), shared.FailOpen())
		_, first := l.TryAcquire(t.Context(), 1) // by EVAL; the next by EVALSHA
		_, second := l.TryAcquire(t.Context(), 1)
		var config *shared.ConfigError
		require.ErrorAs(t, errors.Join(first, second), &config, name)
	}

	stranger := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, ContextTimeoutEnabled: true, DialerRetries: 1,
		TLSConfig: &tls.Config{RootCAs: x509.NewCertPool()}})
	t.Cleanup(func() { _ = stranger.Close() })
	_, err = newShared(t, stranger, "tls", reserve.Must(pace.Bursty(10))).TryAcquire(t.Context(), 1)
	var untrusted x509.UnknownAuthorityError
	require.ErrorAs(t, err, &untrusted)
}
