package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// A raid is an instance on a server, who attacks, and another one, who is attacked.
type raid struct {
	*desk
	server *pgtest.Server
	broker string // its login
	other  *desk
}

// alone is a raid without another instance.
func alone(t *testing.T, s *pgtest.Server, change ...func(*postgres.Options)) *raid {
	t.Helper()
	d := ready(t, s.Access(), change...)
	return &raid{desk: d, server: s, broker: d.access.User}
}

func newRaid(t *testing.T, s *pgtest.Server) *raid {
	t.Helper()
	r := alone(t, s)
	r.other = r.life("theirs", "op-theirs")
	r.other.provision()
	return r
}

func everyRaid(t *testing.T, test func(t *testing.T, r *raid)) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) { test(t, newRaid(t, s)) })
}

func everyAlone(t *testing.T, test func(t *testing.T, r *raid)) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) { test(t, alone(t, s)) })
}

// attacks are statements of one binding against others, the server and the broker.
// MINE and THEIRS stand for names of logins, owners and databases.
var attacks = []string{
	`SET ROLE OWNER_THEIRS`, `SET ROLE LOGIN_THEIRS`, `SET ROLE BROKER`, `SET SESSION AUTHORIZATION LOGIN_THEIRS`,
	`GRANT OWNER_THEIRS TO LOGIN_MINE`, `GRANT LOGIN_MINE TO LOGIN_THEIRS`, `GRANT OWNER_MINE TO LOGIN_THEIRS`,
	`GRANT BROKER TO LOGIN_MINE`, `GRANT pg_read_server_files TO LOGIN_MINE`, `CREATE ROLE lsbx`, `CREATE ROLE lsbx SUPERUSER LOGIN`,
	`ALTER ROLE LOGIN_MINE SUPERUSER`, `ALTER ROLE LOGIN_MINE CREATEROLE`, `ALTER ROLE LOGIN_MINE CREATEDB`,
	`ALTER ROLE LOGIN_MINE REPLICATION`, `ALTER ROLE LOGIN_MINE BYPASSRLS`, `ALTER ROLE OWNER_MINE LOGIN`,
	`ALTER ROLE LOGIN_MINE CONNECTION LIMIT 100`, `ALTER ROLE LOGIN_MINE VALID UNTIL 'infinity'`,
	`ALTER ROLE LOGIN_THEIRS PASSWORD 'x'`, `ALTER ROLE BROKER PASSWORD 'x'`, `ALTER ROLE BROKER SET search_path = public`,
	`ALTER ROLE LOGIN_THEIRS SET search_path = public`, `ALTER ROLE ALL SET search_path = public`, `DROP ROLE LOGIN_THEIRS`,
	`COMMENT ON ROLE LOGIN_MINE IS 'x'`, `COMMENT ON ROLE OWNER_MINE IS 'x'`, `COMMENT ON DATABASE DATABASE_MINE IS 'x'`,
	`ALTER DATABASE DATABASE_MINE CONNECTION LIMIT -1`, `ALTER DATABASE DATABASE_MINE OWNER TO OWNER_MINE`,
	`ALTER DATABASE DATABASE_MINE SET search_path = public`, `ALTER DATABASE DATABASE_THEIRS RENAME TO lsdx`,
	`DROP DATABASE DATABASE_THEIRS`, `DROP DATABASE DATABASE_MINE`, `CREATE DATABASE lsdx`, `CREATE TABLESPACE x LOCATION '/tmp'`,
	`ALTER DATABASE DATABASE_MINE ALLOW_CONNECTIONS false`, `REASSIGN OWNED BY OWNER_THEIRS TO OWNER_MINE`,
	`DROP OWNED BY OWNER_THEIRS`, `DROP OWNED BY BROKER`,
	`ALTER DEFAULT PRIVILEGES FOR ROLE OWNER_THEIRS GRANT ALL ON TABLES TO PUBLIC`,
	`ALTER DEFAULT PRIVILEGES FOR ROLE BROKER GRANT ALL ON TABLES TO PUBLIC`, `CREATE EXTENSION dblink`,
	`CREATE EXTENSION postgres_fdw`, `CREATE EXTENSION file_fdw`, `CREATE EXTENSION adminpack`, `COPY (SELECT 1) TO PROGRAM 'true'`,
	`COPY files FROM PROGRAM 'true'`, `COPY (SELECT 1) TO '/tmp/x'`, `COPY files FROM '/etc/passwd'`,
	`SELECT pg_read_file('PG_VERSION')`, `SELECT pg_read_binary_file('PG_VERSION')`, `SELECT pg_ls_dir('.')`,
	`SELECT pg_stat_file('PG_VERSION')`, `SELECT lo_import('/etc/passwd')`, `SELECT lo_export(1, '/tmp/x')`, `SELECT pg_ls_logdir()`,
	`SELECT pg_ls_waldir()`, `ALTER SYSTEM SET log_statement = 'none'`, `SELECT pg_reload_conf()`, `SELECT pg_rotate_logfile()`,
	`SET log_statement = 'none'`, `SET session_preload_libraries = 'x'`, `SET session_replication_role = replica`, `LOAD '/tmp/x.so'`,
	`SHOW hba_file`, `SELECT * FROM pg_hba_file_rules`, `CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'x', 'x'`,
	`CREATE FUNCTION f() RETURNS int LANGUAGE internal AS 'int4in'`,
	`CREATE EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION trap()`,
	`CREATE SUBSCRIPTION x CONNECTION 'host=/nowhere' PUBLICATION x`, `SELECT pg_create_physical_replication_slot('x')`,
	`SELECT pg_create_logical_replication_slot('x', 'test_decoding')`, `CREATE PUBLICATION x FOR ALL TABLES`,
	`CREATE FOREIGN DATA WRAPPER x`, `CREATE OPERATOR CLASS x FOR TYPE int USING btree AS STORAGE int`, `SELECT * FROM pg_authid`,
	`SELECT * FROM pg_shadow`, `SELECT * FROM pg_user_mapping`, `SELECT * FROM pg_largeobject`, `UPDATE pg_database SET datacl = NULL`,
	`DELETE FROM pg_shdescription`, `INSERT INTO pg_auth_members SELECT * FROM pg_auth_members`,
	`CREATE FUNCTION pg_catalog.f() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `DROP SCHEMA public CASCADE`,
	`ALTER SCHEMA public OWNER TO OWNER_MINE`, `SELECT pg_terminate_backend(PID_THEIRS)`, `SELECT pg_cancel_backend(PID_THEIRS)`,
	`SELECT pg_log_backend_memory_contexts(PID_THEIRS)`, `SELECT pg_switch_wal()`, `SELECT pg_backup_start('x', true)`,
	`SELECT pg_stat_reset()`, `SELECT pg_create_restore_point('x')`, `CHECKPOINT`, `SELECT pg_drop_replication_slot('x')`,
	`SELECT pg_promote()`, `CREATE ACCESS METHOD x TYPE TABLE HANDLER heap_tableam_handler`,
}

// A binding can do nothing to anybody else, nor to the server. What is refused to it is not refused to a superuser.
func TestABindingIsRefused(t *testing.T) {
	everyRaid(t, func(t *testing.T, r *raid) {
		mine, theirs := r.bind("mine", ""), r.other.bind("theirs", "")
		victim := login(t, theirs)
		pid := fmt.Sprint(victim.PgConn().PID())
		names := strings.NewReplacer("OWNER_THEIRS", r.other.owner(), "LOGIN_THEIRS", user(theirs),
			"DATABASE_THEIRS", r.other.database(), "PID_THEIRS", pid,
			"OWNER_MINE", r.owner(), "LOGIN_MINE", user(mine), "DATABASE_MINE", r.database(), "BROKER", r.broker)
		exec(t, login(t, mine), `CREATE TABLE files (line text)`,
			`CREATE FUNCTION trap() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'`)
		root := r.server.Connect(r.database())
		attackers := map[string]*pgx.Conn{"as the owner": login(t, mine), "as itself": login(t, mine)}
		exec(t, attackers["as itself"], "SET ROLE NONE")
		for _, attack := range attacks {
			text := names.Replace(attack)
			for as, c := range attackers {
				_, err := c.Exec(t.Context(), text)
				absent := strings.HasPrefix(attack, "CREATE EXTENSION") && codeOf(err) == "0A000" // the server has no files of it
				if codeOf(err) != denied && !absent {
					t.Errorf("%s %s: answered %q (%v), want it denied", as, attack, codeOf(err), err)
				}
			}
			exec(t, root, "BEGIN")
			if strings.Contains(attack, "PID_THEIRS") {
				text = strings.ReplaceAll(text, pid, "0")
			}
			if codeOf(expect.Err(root.Exec(t.Context(), text))) == denied {
				t.Errorf("%s is refused to a superuser too: it proves nothing", attack)
			}
			exec(t, root, "ROLLBACK")
		}
		exec(t, victim, "SELECT 1")
	})
}

// A binding opens its own database and no other one. It cannot let anybody in, and reads no statement of another tenant's.
func TestABindingOpensItsOwnDatabase(t *testing.T) {
	everyRaid(t, func(t *testing.T, r *raid) {
		mine, theirs := r.bind("mine", ""), r.other.bind("theirs", "")
		c := login(t, mine)
		for _, text := range []string{ // of what one may not grant, the server only warns
			`GRANT ALL ON DATABASE %[1]s TO PUBLIC`, `GRANT CONNECT ON DATABASE %[1]s TO %[2]s`, `GRANT ALL ON DATABASE %[3]s TO %[4]s`,
			`REVOKE ALL ON DATABASE %[1]s FROM %[4]s`,
		} {
			_, _ = c.Exec(t.Context(), fmt.Sprintf(text, r.database(), user(theirs), r.other.database(), user(mine)))
		}
		for _, database := range []string{r.other.database(), "postgres", "template1", r.broker} {
			_, err := connect(t, mine, to(database))
			expect.Same(t, "a connection to "+database, denied, codeOf(err))
		}
		victim := login(t, theirs)
		exec(t, victim, `SELECT 'a secret of theirs'`)
		const seen = `SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%secret of theirs%' AND pid = $1`
		gives(t, login(t, mine), "a tenant sees it", false, seen, victim.PgConn().PID())
		super := r.server.Connect("postgres")
		gives(t, super, "a superuser sees it", true, seen, victim.PgConn().PID())
		_, err := connect(t, theirs, to(r.database()))
		expect.Same(t, "another one's login was let in", denied, codeOf(err))
		gives(t, super, "open to the public", false, `SELECT has_database_privilege('public', $1, 'CONNECT')`, r.database())
		gives(t, super, "the broker's login is a superuser", false,
			`SELECT rolsuper OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = $1`, r.broker)
	})
}

// legacy is what a binding leaves behind that would have it stay, as the owner role and, after SET ROLE NONE, as itself.
var legacy = []string{
	`CREATE TABLE PREFIX_t (a serial PRIMARY KEY, b text)`, `INSERT INTO PREFIX_t (b) VALUES ('kept')`,
	`CREATE VIEW PREFIX_v AS SELECT * FROM PREFIX_t`, `CREATE MATERIALIZED VIEW PREFIX_m AS SELECT * FROM PREFIX_t`,
	`CREATE TYPE PREFIX_e AS ENUM ('a')`, `CREATE DOMAIN PREFIX_d AS int`,
	`CREATE FUNCTION PREFIX_f() RETURNS text SECURITY DEFINER LANGUAGE sql AS 'SELECT current_user::text'`,
	`CREATE PROCEDURE PREFIX_p() SECURITY DEFINER LANGUAGE sql AS 'SELECT 1'`, `CREATE SCHEMA PREFIX_s`, `CREATE TABLE PREFIX_s.t ()`,
	`CREATE OPERATOR public.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)`, `SELECT lo_create(0)`,
	`CREATE STATISTICS PREFIX_x ON a, b FROM PREFIX_t`, `CREATE COLLATION PREFIX_c FROM "C"`,
	`CREATE TEXT SEARCH CONFIGURATION PREFIX_w (COPY = simple)`, `CREATE POLICY PREFIX_y ON PREFIX_t TO LOGIN`,
	`GRANT ALL ON PREFIX_t TO LOGIN, PUBLIC`, `GRANT SELECT (a) ON PREFIX_t TO LOGIN WITH GRANT OPTION`,
	`ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO LOGIN, PUBLIC`,
	`ALTER DEFAULT PRIVILEGES IN SCHEMA PREFIX_s GRANT ALL ON SEQUENCES TO LOGIN`, `CREATE PUBLICATION PREFIX_o FOR TABLE PREFIX_t`,
	`LISTEN PREFIX_l`, `SELECT pg_try_advisory_lock(1)`, `CREATE TEMP TABLE PREFIX_temporary ()`,
	`DECLARE PREFIX_h CURSOR WITH HOLD FOR SELECT 1`, `ALTER ROLE LOGIN IN DATABASE DATABASE SET work_mem = '1MB'`,
	`ALTER ROLE LOGIN SET work_mem = '8MB'`, `BEGIN`, `ALTER ROLE LOGIN PASSWORD 'prepared'`, `CREATE TABLE PREFIX_prepared ()`,
	`INSERT INTO PREFIX_t (b) VALUES ('prepared')`, `PREPARE TRANSACTION 'PREFIX ''"%I prepared'`,
}

// A binding does not outlive its unbind by anything that it has left behind, or that another one has made for it.
// All of it is the owner's, and another binding's session goes on.
func TestNothingOutlivesAnUnbind(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		mine, heir := r.bind("mine", ""), r.bind("heir", "")
		sessions, other := []*pgx.Conn{login(t, mine), login(t, mine), login(t, mine)}, login(t, heir)
		// These come before default privileges of the binding's, by which each new table would give it something.
		exec(t, other, `CREATE TABLE granted (n int)`, `GRANT ALL ON granted TO `+user(mine)+` WITH GRANT OPTION`,
			`BEGIN`, `CREATE TABLE q (n int)`, `GRANT SELECT ON q TO `+user(mine), `PREPARE TRANSACTION 'two'`,
			`BEGIN`, `CREATE TABLE innocent (n int)`, `PREPARE TRANSACTION 'three'`)
		exec(t, sessions[2], `SET ROLE NONE`, `ALTER ROLE CURRENT_USER PASSWORD 'changed'`,
			`ALTER ROLE CURRENT_USER IN DATABASE `+r.database()+` RESET role`)
		for i, prefix := range []string{"own", "self"} {
			if prefix == "self" {
				exec(t, sessions[0], `GRANT CREATE, USAGE ON SCHEMA public TO `+user(mine))
				exec(t, sessions[i], `SET ROLE NONE`)
			}
			for _, text := range legacy {
				text = strings.NewReplacer("PREFIX", prefix, "LOGIN", user(mine), "DATABASE DATABASE", "DATABASE "+r.database(),
					"===", strings.Repeat("=", 3+i)).Replace(text)
				if prefix == "own" && (strings.HasPrefix(text, "ALTER ROLE") || strings.HasPrefix(text, "PREPARE")) {
					continue // only itself may set the one; docs/postgres.md says of the other, as the owner role, that it holds up
				}
				exec(t, sessions[i], text)
			}
		}
		exec(t, sessions[2], `BEGIN`, `LOCK TABLE self_v IN ACCESS SHARE MODE`)
		r.unbind("mine")
		ended(t, "the unbind", sessions...)
		root := r.server.Connect(r.database())
		for what, query := range map[string]string{
			"roles":                 `pg_roles WHERE rolname = 'LOGIN'`,
			"prepared transactions": `pg_prepared_xacts WHERE owner = 'LOGIN' OR gid LIKE 'self%'`,
			"sessions":              `pg_stat_activity WHERE usename = 'LOGIN' OR usesysid NOT IN (SELECT oid FROM pg_roles)`,
			"dependencies on no role": `pg_shdepend WHERE refclassid = 'pg_authid'::regclass
				AND refobjid NOT IN (SELECT oid FROM pg_authid)`,
			"rights of roles that are gone": `pg_class, aclexplode(relacl) a
				WHERE a.grantee <> 0 AND a.grantee NOT IN (SELECT oid FROM pg_authid)`,
			"settings of no role": `pg_db_role_setting WHERE setrole <> 0 AND setrole NOT IN (SELECT oid FROM pg_authid)`,
			"temporary tables":    `pg_class WHERE relname LIKE '%_temporary'`,
			"advisory locks": `pg_locks WHERE locktype = 'advisory' AND objid = 1 AND classid = 0
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
		} {
			query = strings.ReplaceAll(`SELECT count(*) FROM `+query, "LOGIN", user(mine))
			gives(t, root, "after the unbind, "+what, 0, query)
		}
		gives(t, root, "prepared transactions: the innocent one alone", "three",
			`SELECT string_agg(gid, ' ') FROM pg_prepared_xacts WHERE database = $1`, r.database())
		for _, password := range []string{mine.Credentials["password"].(string), "changed", "prepared"} {
			if _, err := connect(t, mine, func(c *pgx.ConnConfig) { c.Password = password }); err == nil {
				t.Error("the login still opens")
			}
		}
		for prefix, c := range map[string]*pgx.Conn{"own": login(t, heir), "self": other} { // what was made stays with the instance
			gives(t, c, "the owner reads of what the binding left", "kept", `SELECT b FROM `+prefix+`_v`)
			exec(t, c, `INSERT INTO `+prefix+`_t (b) VALUES ('more')`, `DROP VIEW `+prefix+`_v`, `ALTER TYPE `+prefix+`_e ADD VALUE 'b'`,
				`ALTER TABLE `+prefix+`_s.t ADD m int`, `DROP SCHEMA `+prefix+`_s CASCADE`)
			gives(t, c, "a function with its definer's rights runs as", r.owner(), `SELECT `+prefix+`_f()`)
		}
		end(root)
		r.unbind("heir")
		r.deprovision() // the prepared transaction of the owner role goes with it
	})
}

// A session that has been let in and has not begun yet is seen by nobody. It does not outlive the unbind.
// One of a binding that was left delays no deletion of its instance.
func TestASessionThatBeginsDoesNotOutliveAnUnbind(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		cfg := expect.Get(pgx.ParseConfig(r.bind("mine", "").Credentials["uri"].(string)))(t)
		cfg.RuntimeParams["options"] = "-c post_auth_delay=3" // any user may ask for it, up to half an hour
		begun := make(chan *pgx.Conn)
		go func() {
			c, _ := pgx.ConnectConfig(context.Background(), cfg)
			begun <- c
		}()
		root, starting := r.server.Connect("postgres"), false
		for deadline := time.Now().Add(20 * time.Second); !starting && time.Now().Before(deadline); {
			starting = value[bool](t, root, `SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'object'
				AND classid = 'pg_database'::regclass AND objid = (SELECT oid FROM pg_database WHERE datname = $1)`, r.database())
		}
		if !starting {
			t.Fatal("no session begins: the test proves nothing")
		}
		r.unbind("mine")
		if c := <-begun; c != nil { // else it was ended as it began
			defer end(c)
			ended(t, "the unbind", c)
		}
		left := r.as("left")
		r.within(20*time.Second, 20*time.Second, calling(r.p.Deprovision, &r.in))
		ended(t, "the deletion", left)
		r.unbind("left")
	})
}

// At its limit of connections, a database can still be cleaned up.
func TestTheLimitOfConnectionsDelaysNobody(t *testing.T) {
	everyRaid(t, func(t *testing.T, r *raid) {
		mine, theirs := r.bind("mine", ""), user(r.other.bind("theirs", ""))
		c := login(t, mine)
		exec(t, c, `CREATE TABLE t ()`, `GRANT ALL ON t TO `+theirs+`, `+r.other.owner(), `CREATE POLICY y ON t TO `+theirs,
			`ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO `+theirs)
		exec(t, login(t, mine), `SET ROLE NONE`, `CREATE TEMP TABLE x ()`)
		exec(t, c, `GRANT CREATE ON SCHEMA public TO `+user(mine), `SET ROLE NONE`, `CREATE TABLE self ()`,
			`GRANT ALL ON self TO `+theirs+` WITH GRANT OPTION`)
		r.server.Exec("postgres", `ALTER DATABASE `+r.database()+` CONNECTION LIMIT 2`)
		if _, err := connect(t, mine); codeOf(err) != "53300" {
			t.Fatalf("the database is not full: %v", err)
		}
		r.other.unbind("theirs") // another one has granted it something, and is full
		r.other.deprovision()
		gives(t, r.server.Connect("postgres"), "the limit, as it was", 2, limitOf, r.database())
		r.unbind("mine")
		r.deprovision()
	})
}

// Code that a tenant has planted in its database never runs with the rights of the broker's login: not in a bind,
// an unbind, an update, a look or a removal. On one version the broker keeps its connections.
// The server, which logs every statement that it sees, sees no password on the way.
func TestNothingPlantedRunsAsTheBroker(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		r := alone(t, s, pool(map[string]int{"17": 2}[s.Version]))
		mine := r.bind("mine", "")
		c := login(t, mine)
		exec(t, c, `CREATE TABLE caught (who text, how text)`, `GRANT INSERT ON caught TO PUBLIC`,
			`CREATE FUNCTION spring(how text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			   INSERT INTO public.caught VALUES (session_user, how); RETURN true; END $$`, `GRANT ALL ON FUNCTION spring TO PUBLIC`)
		for _, types := range [][2]string{
			{"name", "text"}, {"name", "varchar"}, {"name", "name"}, {"text", "text"}, {"oid", "oid"}, {"name", "unknown"},
			{"text", "name"}, {"regclass", "oid"},
		} {
			left, right := types[0], types[1]
			if right == "unknown" {
				right = "bpchar"
			}
			for i, operator := range []string{"=", "<>", "~", "~~"} {
				exec(t, c, fmt.Sprintf(`CREATE FUNCTION op_%[1]s_%[2]s_%[4]d(%[1]s, %[2]s) RETURNS boolean
				  LANGUAGE sql AS $$ SELECT public.spring('%[3]s') $$`,
					left, right, operator, i),
					fmt.Sprintf(`CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = op_%[2]s_%[3]s_%[4]d)`, operator, left, right, i))
			}
		}
		for _, f := range []string{
			`format(text, VARIADIC text[]) RETURNS text`, `format(text, text) RETURNS text`, `pg_terminate_backend(int, bigint) RETURNS boolean`,
			`pg_get_userbyid(oid) RETURNS name`, `coalesce_(text) RETURNS text`, `count(int) RETURNS bigint`, `current_setting(text) RETURNS text`,
		} {
			exec(t, c, `CREATE FUNCTION public.`+f+` LANGUAGE plpgsql AS $$ BEGIN PERFORM public.spring('f'); RETURN NULL; END $$`)
		}
		exec(t, c, `CREATE VIEW pg_namespace AS SELECT * FROM pg_catalog.pg_namespace WHERE public.spring('view')`,
			`CREATE TABLE indexed (a text)`, `CREATE FUNCTION plain(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
			   PERFORM public.spring('index'); RETURN $1; END $$`, `CREATE INDEX ON indexed (plain(a))`, `INSERT INTO indexed VALUES ('x')`,
			`CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.spring('trigger'); RETURN NEW; END $$`,
			`CREATE TRIGGER t BEFORE INSERT ON indexed FOR EACH ROW EXECUTE FUNCTION fired()`,
			`CREATE MATERIALIZED VIEW seen AS SELECT public.spring('materialized') AS x`,
			`CREATE RULE r AS ON DELETE TO indexed DO ALSO SELECT public.spring('rule')`,
			`ALTER ROLE CURRENT_USER SET search_path = public, pg_catalog`, `TRUNCATE caught`)
		exec(t, c, `SET ROLE NONE`, `ALTER ROLE CURRENT_USER SET search_path = public, pg_catalog`, `CREATE TEMP TABLE leftover (a text)`,
			`CREATE TABLE public.mine (n int)`)
		caught := func() []string { return texts(t, s, r.database(), `SELECT who || ' by ' || how FROM public.caught`) }
		r.bind("another", "")
		r.bind("reader", readOnly)
		const extensions = `{"extensions":["citext","hstore"]}`
		r.must(r.updating("op-update", extensions, extensions))
		r.held()
		r.unbind("reader", "mine", "another")
		r.bind("later", "")
		if got := caught(); len(got) > 0 {
			t.Errorf("what was planted ran: %v", got)
		}
		keepersAlone(t, s.Connect("postgres"), "a bind and unbinds", r.broker)
		log := s.Log()
		expect.Never(t, "the server's log", log, mine.Credentials["password"].(string))
		if !strings.Contains(log, `CREATE ROLE `+user(mine)+` LOGIN PASSWORD ''SCRAM-SHA-256$4096`) {
			t.Error("the server's log has no statement that sets one: the test proves nothing")
		}
		careless := login(t, mine, func(c *pgx.ConnConfig) { // it looks for names where a tenant may put them
			c.User, c.Password, c.RuntimeParams["options"] = r.broker, r.access.Password, "-c search_path=public,pg_catalog"
		})
		_, _ = careless.Exec(t.Context(), `SELECT datname = 'x'::varchar FROM pg_catalog.pg_database`)
		end(careless)
		if len(caught()) == 0 {
			t.Error("what was planted catches nobody: the test proves nothing")
		}
		r.deprovision()
	})
}

// Nothing that users write becomes part of a statement.
func TestParametersAreNoSQL(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	hostile := []string{
		`'`, `"`, `'; DROP ROLE x; --`, `"; ALTER ROLE CURRENT_USER SUPERUSER; --`, `%1$I`, `$1`, `\`, `\u0000`, `ü𝄞`, strings.Repeat("x", 10000),
		`citext"; CREATE ROLE evil; --`, `C'; CREATE ROLE evil; --`, `en-US-x-icu' LOCALE 'C`, `$$`, `/*`,
	}
	access := s.Access()
	for i, text := range hostile {
		for _, parameters := range []string{`{"locale":%q}`, `{"extensions":[%q]}`} {
			d := newDesk(t, access)
			d.in.ID = fmt.Sprintf("i-%d", i)
			d.in.Snapshot = []byte(`{"extensions":["citext"]}`)
			d.in.Parameters = []byte(strings.ReplaceAll(fmt.Sprintf(parameters, text), `\U0001d11e`, `x`))
			if _, f := d.drive(calling(d.p.Provision, &d.in)); f == nil {
				t.Errorf("%.40s was taken", d.in.Parameters)
			}
		}
	}
	d := newDesk(t, access)
	d.in.ID, d.in.Platform = `i'"; DROP ROLE x; --`+"\n"+`%1$I\`, `p'"$$`
	d.provision()
	b := d.binding("b", `{"role":"x'; --"}`)
	if _, f := d.drive(calling(d.p.Bind, &b)); f == nil {
		t.Error("a role that does not exist was taken")
	}
	d.as(`b'"; --`)
	d.unbind(`b'"; --`)
	d.deprovision()
	gives(t, s.Connect("postgres"), "roles that a parameter has made", 0, `SELECT count(*) FROM pg_roles WHERE rolname = 'evil'`)
}
