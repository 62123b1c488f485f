package signon

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

// uaaFolder is what `make tools` installs.
const uaaFolder = "../.tools/uaa-4.30.0"

// A cloud is a UAA behind a proxy, which can be down or change an answer, and a Cloud Controller that checks each token by it.
type cloud struct {
	*testing.T
	uaa, controller *httptest.Server
	log             string
	ended           chan struct{}
	up              atomic.Bool
	calm            atomic.Bool // the Cloud Controller answers
	links           atomic.Pointer[string]
	// swap changes what a code is exchanged for.
	swap atomic.Pointer[func(tokens map[string]any)]
	may  atomic.Pointer[map[string]string] // permissions on instances
}

// the UAA is started before any test: it needs more time than they do.
var started *cloud

func TestMain(m *testing.M) {
	flag.Parse()
	stop := func() {}
	if _, err := os.Stat(uaaFolder); err == nil && !testing.Short() {
		started = &cloud{ended: make(chan struct{})}
		stop = started.start()
	}
	status := m.Run()
	stop()
	os.Exit(status)
}

// configuration is that of the UAA.
//
//go:embed testdata/uaa.yml
var configuration string

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// start starts the UAA; it is ready some minutes later.
func (c *cloud) start() (stop func()) {
	dir := must(os.MkdirTemp("", "uaa"))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	inner := must(url.Parse("http://127.0.0.1:" + strconv.Itoa(port)))
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(inner); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			swap := c.swap.Load()
			if swap == nil || r.Request.URL.Path != "/oauth/token" {
				return nil
			}
			var tokens map[string]any
			if err := json.NewDecoder(r.Body).Decode(&tokens); err != nil {
				return err
			}
			(*swap)(tokens)
			body, err := json.Marshal(tokens)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	}
	c.up.Store(true)
	c.uaa = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	certificate := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "uaa"}, NotBefore: time.Now(),
		NotAfter: time.Now().Add(24 * time.Hour)}
	text := func(kind string, der []byte) string {
		const indent = "            "
		lines := strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
		return indent + strings.ReplaceAll(lines, "\n", "\n"+indent)
	}
	file := must(os.Create(filepath.Join(dir, "uaa.yml")))
	if err := template.Must(template.New("").Parse(configuration)).Execute(file, map[string]string{
		"URL": c.uaa.URL, "Key": text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"Certificate": text("CERTIFICATE",
			must(x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key))),
	}); err != nil {
		panic(err)
	}
	_ = file.Close()
	c.log = filepath.Join(dir, "log")
	log := must(os.Create(c.log))
	// It runs for a minute or two: what would pay off later is left out.
	java := exec.Command("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-opens",
		"java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.util=ALL-UNNAMED", "-jar",
		must(filepath.Abs(uaaFolder+"/runner.jar")), "--port", strconv.Itoa(port),
		"--temp-directory", filepath.Join(dir, "tomcat"), must(filepath.Abs(uaaFolder+"/app")))
	java.Dir, java.Stdout, java.Stderr = dir, log, log
	java.Env = append(os.Environ(), "UAA_CONFIG_PATH="+dir, "CLOUDFOUNDRY_CONFIG_PATH="+dir, "LOGIN_SECRET=secret-of-the-login")
	if err := java.Start(); err != nil {
		panic(err)
	}
	go func() { _ = java.Wait(); close(c.ended) }()
	return func() {
		_ = java.Process.Kill()
		<-c.ended
		c.uaa.Close()
		_ = os.RemoveAll(dir)
	}
}

// ready waits for the UAA, and makes its Cloud Controller.
func ready(t *testing.T) *cloud {
	t.Helper()
	if testing.Short() {
		t.Skip("a UAA needs a minute")
	}
	if started == nil {
		t.Fatalf("%s is not there: make tools installs it", uaaFolder)
	}
	c := started
	c.T = t
	for deadline := time.Now().Add(15 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		resp, err := http.Get(c.uaa.URL + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		log := string(must(os.ReadFile(c.log)))
		select {
		case <-c.ended:
			t.Fatalf("the UAA has ended:\n%s", log[max(0, len(log)-5000):])
		default:
		}
		if strings.Contains(log, "Context initialization failed") || time.Now().After(deadline) {
			t.Fatalf("the UAA does not start:\n%s", log[max(0, len(log)-5000):])
		}
	}
	c.calm.Store(true)
	c.links.Store(&c.uaa.URL)
	c.may.Store(&map[string]string{})
	c.controller = httptest.NewServer(http.HandlerFunc(c.control))
	t.Cleanup(c.controller.Close)
	return c
}

// control answers as Cloud Controller does.
func (c *cloud) control(w http.ResponseWriter, r *http.Request) {
	if !c.calm.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/" {
		_, _ = fmt.Fprintf(w, `{"links":{"login":{"href":%[1]q},"uaa":{"href":%[1]q}}}`, *c.links.Load())
		return
	}
	guid, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/permissions"), "/v3/service_instances/")
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !bearer {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	is := struct {
		User  string   `json:"user_name"`
		Scope []string `json:"scope"`
	}{}
	if c.post("/check_token", "cloud_controller", "checks-tokens", url.Values{"token": {token}}, &is) != nil ||
		is.User != "ada" ||
		!strings.Contains(fmt.Sprint(is.Scope), "cloud_controller_service_permissions.read") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if permission, ok := (*c.may.Load())[guid]; ok {
		_, _ = io.WriteString(w, permission)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// post sends a form to the UAA as one of its clients.
func (c *cloud) post(path, client, secret string, form url.Values, into any) error {
	r, _ := http.NewRequest("POST", c.uaa.URL+path, strings.NewReader(form.Encode()))
	r.SetBasicAuth(client, secret)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(resp.Body).Decode(into)
}

// client makes a client in the UAA, as Cloud Controller does for a catalog's.
func (c *cloud) client(made catalog.DashboardClient) {
	c.Helper()
	var token struct {
		Access string `json:"access_token"`
	}
	expect.OK(c, c.post("/oauth/token", "cc-service-dashboards", "makes-clients",
		url.Values{"grant_type": {"client_credentials"}}, &token))
	body, _ := json.Marshal(map[string]any{
		"client_id": made.ID, "client_secret": made.Secret, "redirect_uri": []string{made.RedirectURI},
		"scope":                  []string{"openid", "cloud_controller_service_permissions.read"},
		"authorized_grant_types": []string{"authorization_code"}, "authorities": []string{"uaa.resource"}})
	make, _ := http.NewRequest("POST", c.uaa.URL+"/oauth/clients", bytes.NewReader(body))
	make.Header.Set("Authorization", "Bearer "+token.Access)
	make.Header.Set("Content-Type", "application/json")
	answer := expect.Get(http.DefaultClient.Do(make))(c)
	defer func() { _ = answer.Body.Close() }()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusCreated {
		c.Fatalf("the UAA does not make a client: %d %s", answer.StatusCode, text)
	}
}

// exchange has a client of its own exchange a code, and gives its tokens.
func (c *cloud) exchange(made catalog.DashboardClient, code string) (tokens map[string]any) {
	c.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {made.RedirectURI}}
	if err := c.post("/oauth/token", made.ID, made.Secret, form, &tokens); err != nil || tokens["id_token"] == nil {
		c.Fatalf("no tokens: %v in %d members", err, len(tokens))
	}
	return tokens
}

func (c *cloud) permit(of map[string]string) { c.may.Store(&of) }

func TestByCloudFoundry(t *testing.T) {
	c := ready(t)
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.URL) }))
	t.Cleanup(evil.Close)
	on := expect.Get(registry().WithSignOn(platforms.Default, &platforms.SignOn{Hosts: []string{c.uaa.URL, c.controller.URL}}))(t)
	d := open(t, on)

	// A host that is not listed is never asked, whoever names it: the header, or a listed one.
	d.clients("broker", evil.URL+"/v2/info")
	d.comes(page("default", "mine"), http.StatusServiceUnavailable, "Nobody can sign on now")
	if found := d.clients("korifi", c.controller.URL+"/v2/info"); len(found) > 0 {
		t.Errorf("a platform without a sign-on is to make %v", found)
	}
	d.clients("broker", c.controller.URL+"/v2/info")
	c.links.Store(&evil.URL)
	d.comes(page("default", "mine"), http.StatusServiceUnavailable, "Nobody can sign on now")
	c.links.Store(&c.uaa.URL)

	// A client for each offering whose pages are ours, the same after a redeployment.
	made := d.clients("broker", c.controller.URL+"/v2/info")
	if len(made) != 2 || made["s-pg"].ID == made["s-other"].ID || made["s-pg"].Secret == made["s-other"].Secret {
		t.Fatalf("the catalog has clients of %d offerings", len(made))
	}
	again := open(t, on).clients("broker", "")["s-pg"]
	if again.ID != made["s-pg"].ID || again.Secret != made["s-pg"].Secret {
		t.Error("another process has another client")
	}
	c.client(made["s-pg"])

	c.permit(map[string]string{"mine": `{"read":true,"manage":false}`, "theirs": `{"read":false,"manage":false}`})
	d.offers(d.comes(page("default", "mine"), http.StatusOK, "The orders"), false)
	d.comes(page("default", "theirs"), http.StatusForbidden, "You may not see this page")
	d.is(d.get(page("p-1", "mine")), http.StatusUnauthorized, "longshore dashboard mine")
	d.is(d.get(page("default", "absent")), http.StatusUnauthorized, "longshore dashboard absent")
	d.attacks()
	c.tokens(d, made["s-pg"])

	// The permission is asked again once the session has ended, and no earlier.
	d.comes(page("default", "mine"), http.StatusOK, "The orders")
	d.pass(pages.SessionTime)
	d.comes(page("default", "mine"), http.StatusOK, "The orders")
	c.permit(map[string]string{})
	d.is(d.get(page("default", "mine")), http.StatusOK, "The orders")
	d.pass(pages.SessionTime)
	d.comes(page("default", "mine"), http.StatusForbidden, "You may not see this page")

	// Down, one after the other.
	c.permit(map[string]string{"mine": `{"manage":true}`})
	back := d.code(page("default", "mine"))
	c.calm.Store(false)
	d.is(d.get(back.String()), http.StatusServiceUnavailable, "Nobody can sign on now")
	c.calm.Store(true)
	back = d.code(page("default", "mine"))
	c.up.Store(false)
	d.is(d.get(back.String()), http.StatusServiceUnavailable, "Nobody can sign on now")
	c.up.Store(true)
	d.offers(d.comes(page("default", "mine"), http.StatusOK, "The orders"), true)
	d.orders("[0-9a-f-]{36}")
	c.permit(map[string]string{"mine": `{"read":true}`})
	d.pass(pages.SessionTime)
	d.offers(d.comes(page("default", "mine"), http.StatusOK, "The orders"), false)
}

// tokens has the login answer a code by tokens that are not of this sign-on. UAA 4.30 ignores PKCE: what refuses them is ours.
func (c *cloud) tokens(d *desk, own catalog.DashboardClient) {
	c.Helper()
	other := catalog.DashboardClient{ID: "another-program", Secret: "secret-of-another", RedirectURI: origin + pages.PathCallback}
	c.client(other)
	away := func(client catalog.DashboardClient) map[string]any {
		a := d.follow(d.get(c.uaa.URL+"/oauth/authorize?"+url.Values{"client_id": {client.ID}, "response_type": {"code"},
			"redirect_uri": {client.RedirectURI}, "scope": {"openid cloud_controller_service_permissions.read"},
			"nonce": {"theirs"}, "state": {"theirs"}}.Encode()), client.RedirectURI)
		back, _ := url.Parse(a.Header.Get("Location"))
		return c.exchange(client, back.Query().Get("code"))
	}
	foreign, earlier := away(other), away(own)
	for why, swap := range map[string]func(map[string]any){
		"AnothersClient": func(tokens map[string]any) { tokens["id_token"] = foreign["id_token"] },
		"EarlierSignOn":  func(tokens map[string]any) { tokens["id_token"] = earlier["id_token"] },
		"AnAccessToken":  func(tokens map[string]any) { tokens["id_token"] = tokens["access_token"] },
		"None":           func(tokens map[string]any) { delete(tokens, "id_token") },
		"Unsigned": func(tokens map[string]any) {
			parts := strings.Split(tokens["id_token"].(string), ".")
			tokens["id_token"] = parts[0] + "." + parts[1] + "."
		},
	} {
		back := d.code(page("default", "mine"))
		c.swap.Store(&swap)
		a := d.get(back.String())
		c.swap.Store(nil)
		if a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "You are not signed on") {
			c.Errorf("%s: answered %d, want 403:\n%s", why, a.StatusCode, a.body)
		}
	}
}
