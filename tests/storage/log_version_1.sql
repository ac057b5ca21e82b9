-- An event log of version 1, with events of every kind.
PRAGMA application_id = 1178750023;
PRAGMA user_version = 1;
CREATE TABLE decisions (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL, arms TEXT NOT NULL, scores TEXT NOT NULL,
    seed INTEGER NOT NULL, version INTEGER NOT NULL, catalogue INTEGER NOT NULL,
    until INTEGER NOT NULL, otherwise REAL NOT NULL, sums INTEGER NOT NULL,
    explored INTEGER NOT NULL, floor REAL NOT NULL, propensities TEXT, eligible TEXT,
    degraded INTEGER NOT NULL
) STRICT;
CREATE TABLE rewards (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, decision TEXT NOT NULL, arm TEXT,
    part TEXT NOT NULL, value REAL NOT NULL, status TEXT NOT NULL
) STRICT;
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, put TEXT NOT NULL, taken TEXT NOT NULL
) STRICT;
CREATE TABLE ticks (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
INSERT INTO changes VALUES (1, 1000, '[["x",[0.5],null],["y",[0.25],{"price":3}]]', '[]');
INSERT INTO decisions VALUES (
    2, 1001, 'a', '[0.1,0.30000000000000004]', '["x",7]', '[0.5,0.25]', 9223372036854775807, 3, 1,
    2001, 0.0, 0, 1, 0.1, '[0.75,0.25]', '{"price":{"<=":10}}', 0
);
INSERT INTO rewards VALUES (3, 1002, 'a', '"x"', '', 0.30000000000000004, 'counted');
INSERT INTO rewards VALUES (4, 1002, 'a', '7', '', 1.0, 'counted');
INSERT INTO rewards VALUES (5, 1003, 'nobody', NULL, '', 1.0, 'unknown');
INSERT INTO ticks VALUES (6, 1004);
