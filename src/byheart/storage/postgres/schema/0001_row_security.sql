-- Row level security as a second barrier between spaces, off at first. The owner of the store turns
-- it on with SELECT {schema}.set_row_security(true). A transaction for one space then sees and
-- writes the rows of this space alone, even if a statement forgets its filter. A transaction for the
-- whole store names no space, and sees all rows.
CREATE FUNCTION {schema}.set_row_security(wanted boolean) RETURNS text
    LANGUAGE plpgsql SET search_path = pg_catalog SET client_min_messages = warning AS $set$
DECLARE
    own text := '(SELECT nullif(current_setting(''byheart.space_no'', true), '''')::bigint)';
    stored record;
    allowed text;
    changed integer := 0;
BEGIN
    FOR stored IN
        SELECT format('%I.%I', n.nspname, c.relname) AS name, n.nspname AS home,
            array_agg(a.attname::text) AS columns
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE (n.nspname = '{schema}' AND c.relkind = 'p')
            OR (n.nspname ~ '^{schema}_[0-9][0-9]$' AND c.relkind = 'r')
        GROUP BY 1, 2 ORDER BY 1
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS one_space ON %s', stored.name);
        IF NOT wanted THEN
            EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', stored.name);
            EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', stored.name);
        ELSE
            -- Numbers carry their space in the upper bits.
            allowed := CASE
                WHEN 'change_no' = ANY(stored.columns) THEN format('change_no >> {bits} = %s', own)
                WHEN 'memory_no' = ANY(stored.columns) THEN format('memory_no >> {bits} = %s', own)
                WHEN 'chunk_no' = ANY(stored.columns) THEN format('chunk_no >> {bits} = %s', own)
                WHEN 'space_no' = ANY(stored.columns) THEN format('space_no = %s', own)
                WHEN 'space' = ANY(stored.columns) THEN format(
                    'space = (SELECT s.name FROM {schema}.spaces s WHERE s.space_no = %s)', own)
                WHEN 'workspace_no' = ANY(stored.columns) THEN format(
                    'workspace_no IN (SELECT w.workspace_no FROM %I.workspaces w)', stored.home)
            END;
            IF allowed IS NULL THEN
                RAISE EXCEPTION 'the table % has no column that names its space', stored.name;
            END IF;
            EXECUTE format('CREATE POLICY one_space ON %s USING (%s IS NULL OR %s)',
                stored.name, own, allowed);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', stored.name);
            EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', stored.name);
        END IF;
        changed := changed + 1;
    END LOOP;
    RETURN format('row level security is %s for %s tables',
        CASE WHEN wanted THEN 'on' ELSE 'off' END, changed);
END $set$;
