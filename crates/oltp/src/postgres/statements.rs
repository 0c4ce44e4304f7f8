//! The statements of the five transactions (clauses 2.4 to 2.8).
//!
//! They are sent in `session`.

/// Session settings: generic plans that look up rows by index, one after another. Rows are thus locked in the
/// order of the parameters, and small tables with many dead row versions are not scanned.
pub(super) const SETTINGS: &str = "\
    SET plan_cache_mode = force_generic_plan; \
    SET enable_seqscan = off; \
    SET enable_hashjoin = off; \
    SET enable_mergejoin = off; \
    SET max_parallel_workers_per_gather = 0; \
    SET jit = off; \
    SET default_transaction_isolation = 'read committed'";

pub(super) const WAREHOUSE_TAX: &str = "SELECT w_tax FROM warehouse WHERE w_id = $1";

pub(super) const CUSTOMER_DISCOUNT: &str = "\
    SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

pub(super) const ITEMS: &str = "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id = ANY ($1)";

pub(super) const NEXT_ORDER: &str = "\
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2
    RETURNING d_next_o_id - 1, d_tax";

pub(super) const ENTER_ORDER: &str = "\
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES ($1, $2, $3, $4, LOCALTIMESTAMP, NULL, $5, $6)";

pub(super) const ENTER_NEW_ORDER: &str = "\
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)";

/// Takes the items of an order from stock, and inserts the order lines with the stock's text for the district.
///
/// Each stock row is updated once, with the sum of its lines. The result is the same as line by line (clause
/// 2.4.2.2): 91 is added whenever a quantity would fall below 10, so the quantity is determined modulo 91. The
/// lines of an order take at most 150 together, so adding 2 × 91 keeps the dividend positive.
pub(super) fn enter_lines(district: u32) -> String {
    format!(
        "WITH taken AS (
            UPDATE stock SET
                s_quantity = 10 + (s_quantity - 10 - quantity + 2 * 91) % 91,
                s_ytd = s_ytd + quantity,
                s_order_cnt = s_order_cnt + lines,
                s_remote_cnt = s_remote_cnt + remote
            FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[])
                AS asked (supply, item, quantity, lines, remote)
            WHERE s_w_id = asked.supply AND s_i_id = asked.item
            RETURNING s_w_id, s_i_id, s_quantity, s_data, s_dist_{district:02} AS dist_info
        ), entered AS (
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                ol_quantity, ol_amount, ol_dist_info)
            SELECT $6, $7, $8, line.number, line.item, line.supply, NULL, line.quantity, line.amount, dist_info
            FROM unnest($9::smallint[], $10::int[], $11::int[], $12::smallint[], $13::int[])
                AS line (number, item, supply, quantity, amount)
            JOIN taken ON s_w_id = line.supply AND s_i_id = line.item
        )
        SELECT s_w_id, s_i_id, s_quantity, s_data FROM taken"
    )
}

pub(super) const PAY_WAREHOUSE: &str = "\
    UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1
    RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip";

pub(super) const PAY_DISTRICT: &str = "\
    UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip";

/// Expression for the customer with number `$3`.
pub(super) const BY_NUMBER: &str = "$3";

/// Expression for the customer with last name `$3`: the middle one by first name, rounded up.
pub(super) const BY_NAME: &str = "\
    (SELECT bearers[(cardinality(bearers) + 1) / 2] FROM
        (SELECT array_agg(c_id ORDER BY c_first) AS bearers FROM customer
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3) AS named)";

/// Books a payment on the customer and inserts it into `history`.
pub(super) fn pay(who: &str) -> String {
    format!(
        "WITH payer AS (
            UPDATE customer SET
                c_balance = c_balance - $4::bigint,
                c_ytd_payment = c_ytd_payment + $4::bigint,
                c_payment_cnt = c_payment_cnt + 1,
                c_data = CASE c_credit WHEN 'BC'
                    THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $6::smallint, $5::int, $4::bigint, c_data), 500)
                    ELSE c_data END
            WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = {who}
            RETURNING c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
                c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance,
                CASE c_credit WHEN 'BC' THEN left(c_data, 200) END AS data
        ), entered AS (
            INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
            SELECT c_id, c_d_id, c_w_id, d_id, d_w_id, LOCALTIMESTAMP, $4::bigint, w_name || '    ' || d_name
            FROM payer, warehouse, district
            WHERE w_id = $5 AND d_w_id = $5 AND d_id = $6
        )
        SELECT * FROM payer"
    )
}

/// Reads the customer, the last order and its lines.
pub(super) fn status(who: &str) -> String {
    format!(
        "SELECT c_id, c_balance, c_first, c_middle, c_last, o_id, o_entry_d, o_carrier_id,
            ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
        FROM customer
        CROSS JOIN LATERAL (
            SELECT o_id, o_entry_d, o_carrier_id FROM orders
            WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = c_id
            ORDER BY o_id DESC LIMIT 1
        ) AS latest
        JOIN order_line ON ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = o_id
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = {who}"
    )
}

/// Waits for other deliveries of the warehouse. The first key avoids collisions with the locks of other
/// programs.
pub(super) const ONE_DELIVERY: &str = "SELECT pg_advisory_xact_lock(5390, $1)";

/// Delivers the oldest order of each district; returns a row for each district that had one.
pub(super) const DELIVER: &str = "\
    WITH oldest AS MATERIALIZED (
        SELECT d_id, o_id FROM generate_series(1, 10) AS districts (d_id)
        CROSS JOIN LATERAL (
            SELECT no_o_id AS o_id FROM new_order
            WHERE no_w_id = $1 AND no_d_id = d_id::smallint
            ORDER BY no_o_id LIMIT 1
        ) AS waiting
    ), taken AS (
        DELETE FROM new_order USING oldest
        WHERE no_w_id = $1 AND no_d_id = d_id::smallint AND no_o_id = o_id
        RETURNING no_d_id, no_o_id
    ), delivered AS (
        UPDATE orders SET o_carrier_id = $2 FROM taken
        WHERE o_w_id = $1 AND o_d_id = no_d_id AND o_id = no_o_id
        RETURNING o_d_id, o_c_id
    ), lines AS (
        UPDATE order_line SET ol_delivery_d = LOCALTIMESTAMP FROM taken
        WHERE ol_w_id = $1 AND ol_d_id = no_d_id AND ol_o_id = no_o_id
        RETURNING ol_d_id, ol_amount
    ), totals AS (
        SELECT ol_d_id, sum(ol_amount) AS total FROM lines GROUP BY ol_d_id
    )
    UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
    FROM delivered JOIN totals ON ol_d_id = o_d_id
    WHERE c_w_id = $1 AND c_d_id = o_d_id AND c_id = o_c_id
    RETURNING c_d_id";

/// Counts the items of a district's last 20 orders whose stock is below the threshold (clause 2.8.2.2).
pub(super) const STOCK_LEVEL: &str = "\
    SELECT count(DISTINCT s_i_id) FROM district
    JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id
    JOIN stock ON s_w_id = d_w_id AND s_i_id = ol_i_id AND s_quantity < $3
    WHERE d_w_id = $1 AND d_id = $2";
