-- The public tables of the catalog. Each block below a "-- version N" line takes a catalog of version N - 1
-- to version N; a new file gets all of them in order. Times are UTC. docs/reference/catalog.md shows them.

-- version 1

CREATE TABLE meta (key VARCHAR NOT NULL, value VARCHAR NOT NULL); -- no keys: DuckLake has none

-- One row per golden file, through all its renames.
CREATE TABLE golden (
    id BIGINT NOT NULL,              -- made from the path of its birth, so that two catalogs agree
    path VARCHAR NOT NULL,           -- where it is now, or was last
    model VARCHAR NOT NULL,
    test_case VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,    -- empty where the path does not say, as are the next two
    platform VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    born_path VARCHAR NOT NULL,
    alive BOOLEAN NOT NULL           -- present at the tip of a branch of the catalog
);

-- One row per distinct content.
CREATE TABLE document (
    id VARCHAR NOT NULL,             -- git blob id
    content BIGINT NOT NULL,         -- equal for equal metrics, steps, values and texts, whatever the formatting
    size BIGINT NOT NULL,            -- bytes
    shape VARCHAR NOT NULL,          -- metrics, inference, throughput, record, bridge, empty, unknown
    n_series INTEGER NOT NULL,
    n_values BIGINT NOT NULL,
    n_nonfinite BIGINT NOT NULL,
    n_problems INTEGER NOT NULL,     -- places that are no numbers
    bare_constants BOOLEAN NOT NULL, -- bare NaN or Infinity, which strict JSON refuses
    twice BOOLEAN NOT NULL,          -- JSON inside a JSON string
    error VARCHAR                    -- why it could not be read; null when it could
);

-- One row per document and metric.
CREATE TABLE series (
    document VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    position INTEGER NOT NULL,       -- place in the file, from 0
    start_step BIGINT,               -- the grid as the file declares it; null when it does not
    end_step BIGINT,
    step_interval BIGINT,
    "precision" VARCHAR,             -- value_precision as the file says it
    form VARCHAR NOT NULL,           -- object, list, vector, scalar
    n_values INTEGER NOT NULL,
    n_nan INTEGER NOT NULL,
    n_inf INTEGER NOT NULL,
    first_step BIGINT,               -- null when there are no values
    last_step BIGINT,
    content BIGINT NOT NULL
);

-- Steps and values, each distinct series content once. Non-finite values are IEEE NaN and infinities, never null.
CREATE TABLE "value" (
    content BIGINT NOT NULL,
    step BIGINT NOT NULL,
    "value" DOUBLE NOT NULL
);

-- What is not a number: generated text, prompts, nested lists, as compact JSON.
CREATE TABLE "text" (
    document VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    "text" VARCHAR NOT NULL
);

CREATE TABLE "commit" (
    id VARCHAR NOT NULL,
    parents VARCHAR[] NOT NULL,      -- the first is the branch's own line
    committed_at TIMESTAMP NOT NULL,
    subject VARCHAR NOT NULL
);

-- First-parent line of each branch the catalog was built from.
CREATE TABLE line (
    branch VARCHAR NOT NULL,
    position INTEGER NOT NULL,       -- 0 is the root, the highest is the tip
    "commit" VARCHAR NOT NULL
);

-- What a commit did to a golden file, against the commit's first parent.
CREATE TABLE revision (
    golden BIGINT NOT NULL,
    "commit" VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    document VARCHAR,                -- null when deleted
    change VARCHAR NOT NULL,         -- added, modified, renamed, deleted
    old_path VARCHAR,                -- null unless renamed
    old_document VARCHAR             -- null when added
);

CREATE TABLE sync (
    "commit" VARCHAR NOT NULL,
    landed_at TIMESTAMP NOT NULL,
    kind VARCHAR NOT NULL,           -- merge, squash, revert
    base VARCHAR NOT NULL,
    downstream VARCHAR NOT NULL,
    upstream VARCHAR NOT NULL,       -- empty for squash and revert
    subject VARCHAR NOT NULL
);

CREATE TABLE run (
    id VARCHAR NOT NULL,             -- provider:run_id#attempt
    provider VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    ref VARCHAR NOT NULL,
    repository VARCHAR NOT NULL,
    "commit" VARCHAR NOT NULL,       -- empty when unknown
    branch VARCHAR NOT NULL,
    conclusion VARCHAR NOT NULL,
    started_at TIMESTAMP,
    completed_at TIMESTAMP,
    url VARCHAR NOT NULL,
    recorded_at TIMESTAMP NOT NULL
);

CREATE TABLE job (
    run VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    test_case VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    platform VARCHAR NOT NULL,
    conclusion VARCHAR NOT NULL,
    started_at TIMESTAMP,
    completed_at TIMESTAMP,
    url VARCHAR NOT NULL,
    allow_failure BOOLEAN NOT NULL
);

CREATE TABLE artifact (
    run VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    size BIGINT NOT NULL,            -- bytes as delivered
    sha256 VARCHAR NOT NULL,         -- of the delivered bytes; empty when unknown
    job VARCHAR NOT NULL,            -- empty when it cannot be attributed
    attempt INTEGER NOT NULL,
    created_at TIMESTAMP,
    expired BOOLEAN NOT NULL,
    url VARCHAR NOT NULL
);

-- What a run produced for a golden file.
CREATE TABLE observation (
    golden BIGINT NOT NULL,
    path VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    job VARCHAR NOT NULL,            -- empty when unknown
    attempt INTEGER NOT NULL,
    replicate VARCHAR NOT NULL,      -- empty for the only one
    artifact VARCHAR NOT NULL,
    member VARCHAR NOT NULL,
    document VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL,         -- of the golden file's bytes inside the artifact
    observed_at TIMESTAMP NOT NULL   -- end of the job or run, or when it was recorded
);

CREATE TABLE refresh (
    id VARCHAR NOT NULL,             -- commit:<id> when read back from a commit's trailers
    started_at TIMESTAMP,
    command VARCHAR NOT NULL,
    dry_run BOOLEAN NOT NULL,
    runs VARCHAR[] NOT NULL,         -- run.id
    "commit" VARCHAR NOT NULL        -- empty unless read back from trailers
);

CREATE TABLE refresh_file (
    refresh VARCHAR NOT NULL,
    golden BIGINT NOT NULL,
    path VARCHAR NOT NULL,
    action VARCHAR NOT NULL,         -- written, unchanged, refused, missing, would-write
    reason VARCHAR NOT NULL,
    job VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    artifact VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL,         -- of the candidate's bytes
    document VARCHAR,                -- null when nothing was written
    n_findings INTEGER NOT NULL,
    metrics VARCHAR[] NOT NULL,      -- taken from the run, those not named were kept; empty when only a commit tells of it
    matches STRUCT(rev VARCHAR, "commit" VARCHAR, level VARCHAR, detail VARCHAR)[] NOT NULL
);

CREATE VIEW golden_value AS
SELECT r.path, g.model, g.test_case, g.environment, g.platform, g.variant, s.metric, v.step, v."value", r."commit", c.committed_at
FROM revision AS r
JOIN golden AS g ON g.id = r.golden
JOIN "commit" AS c ON c.id = r."commit"
JOIN series AS s ON s.document = r.document
JOIN "value" AS v ON v.content = s.content;

-- version 2

-- Which part of the values a series is kept in: 0, or a number made from the case whose run brought it first.
-- A store keeps each part in files of its own, so that the history of one case is read from few of them.
ALTER TABLE "value" ADD COLUMN home UTINYINT DEFAULT 0;
