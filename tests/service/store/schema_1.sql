-- Version 1 of the database, as the first version of uncanny made it in SQLite.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE audit (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DOUBLE NOT NULL, 
	who VARCHAR(200) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	subject VARCHAR(200), 
	address VARCHAR(64), 
	details TEXT
);
CREATE TABLE facts (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_facts PRIMARY KEY (name)
);
CREATE TABLE files (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size BIGINT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	created_by VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_files PRIMARY KEY (id)
);
CREATE TABLE idempotency_keys (
	who VARCHAR(200) NOT NULL, 
	"key" VARCHAR(200) NOT NULL, 
	request VARCHAR(64) NOT NULL, 
	answer TEXT, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (who, "key")
);
CREATE TABLE image_sets (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(200), 
	created_at DOUBLE NOT NULL, 
	created_by VARCHAR(200) NOT NULL, 
	image_count BIGINT DEFAULT '0' NOT NULL, 
	image_bytes BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_image_sets PRIMARY KEY (id)
);
CREATE TABLE jobs (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(32) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	name VARCHAR(200), 
	params TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	created_by VARCHAR(200) NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, 
	exit_code INTEGER, 
	error TEXT, 
	progress TEXT, 
	due_at DOUBLE NOT NULL, 
	attempt INTEGER NOT NULL, 
	worker VARCHAR(100), 
	lease_until DOUBLE, 
	cancel_requested BOOLEAN NOT NULL, 
	mark BIGINT NOT NULL, 
	mark_at_claim BIGINT NOT NULL, 
	strikes INTEGER NOT NULL, 
	CONSTRAINT ck_jobs_state CHECK (state IN ('queued', 'running', 'finished', 'incomplete', 'over_budget', 'cancelled', 'failed')), 
	CONSTRAINT uq_jobs_id UNIQUE (id)
);
CREATE INDEX ix_jobs_state_due_at_seq ON jobs (state, due_at, seq);
CREATE TABLE tokens (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	revoked_at DOUBLE, 
	used_at DOUBLE, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT ck_tokens_role CHECK (role IN ('reader', 'reviewer', 'operator')), 
	CONSTRAINT uq_tokens_hash UNIQUE (hash)
);
CREATE TABLE images (
	image_set VARCHAR(32) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size BIGINT NOT NULL, 
	width INTEGER NOT NULL, 
	height INTEGER NOT NULL, 
	CONSTRAINT pk_images PRIMARY KEY (image_set, name), 
	CONSTRAINT fk_images_image_set FOREIGN KEY(image_set) REFERENCES image_sets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_images_image_set_sha256 UNIQUE (image_set, sha256)
);
CREATE TABLE sessions (
	hash VARCHAR(64) NOT NULL, 
	token VARCHAR(32) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (hash), 
	CONSTRAINT fk_sessions_token FOREIGN KEY(token) REFERENCES tokens (id) ON DELETE CASCADE
);
CREATE INDEX ix_sessions_token ON sessions (token);
INSERT INTO alembic_version VALUES ('1');
