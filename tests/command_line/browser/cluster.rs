//! The place "Cluster": the audit of a fake API server with 10,000 objects.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Browser, ENTER, TAB};
use crate::api::{Api, answer, failure, groups, resources};

const GROUP: &str = "vshn.appcat.vshn.io";
const OBJECTS: usize = 10_000;
const HOSTILE: &str = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>";

/// Of 100 objects: one disagrees since a month and one since a day, one has a hostile status, five have none, nine are
/// created, one failed, and the others are ready.
fn object(number: usize) -> Value {
    let conditions = |status: &str, time: &str| {
        json!([
            {"type": "Ready", "status": status, "reason": "Tested", "message": "by a test", "lastTransitionTime": time},
            {"type": "PodReady", "status": "True", "reason": "Tested", "message": "", "lastTransitionTime": "2026-11-01T12:00:00Z"},
        ])
    };
    let of = |phase: &str, conditions: Value| json!({"phase": phase, "instanceNamespace": "i", "conditions": conditions});
    let status = match number % 100 {
        0 => of("Ready", conditions("False", "2026-10-20T12:00:00Z")),
        1 => of("Ready", conditions("False", "2026-11-20T12:00:00Z")),
        2 => of(HOSTILE, json!([{"type": HOSTILE, "status": HOSTILE, "message": HOSTILE}])),
        3..8 => json!({}),
        17 => of("Failed", conditions("False", "2026-11-22T12:00:00Z")),
        8..17 => of("Provisioning", conditions("False", "2026-11-24T12:00:00Z")),
        _ => of("Ready", conditions("True", "2026-11-02T12:00:00Z")),
    };
    // The time of an object without conditions.
    let created = if number % 100 == 2 { "2026-11-10T12:00:00Z" } else { "2026-10-01T12:00:00Z" };
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "VSHNRedis",
        "metadata": {"name": format!("cache-{number}"), "namespace": format!("team-{}", number % 40), "uid": format!("u-{number}"),
            "generation": 1, "creationTimestamp": created},
        "spec": {"size": 1}, "status": status,
    })
}

/// Answers at once up to the last page, and that one when the gate is closed.
async fn list(uri: Uri, last: &Semaphore) -> Response {
    let query = uri.query().unwrap_or_default();
    let number = |name: &str| {
        let found = query.split('&').find_map(|part| part.strip_prefix(name));
        found.and_then(|text| text.parse().ok())
    };
    let (start, limit) = (number("continue=").unwrap_or(0), number("limit=").unwrap_or(OBJECTS));
    let end = OBJECTS.min(start + limit);
    if end == OBJECTS {
        assert!(last.acquire().await.is_err(), "a gate has no permits");
    }
    let items: Value = (start..end).map(object).collect();
    let token = if end < OBJECTS { end.to_string() } else { String::new() };
    let metadata = json!({"continue": token, "remainingItemCount": OBJECTS - end});
    answer(200, &json!({"metadata": metadata, "items": items}))
}

async fn read(Path((_, name)): Path<(String, String)>) -> Response {
    let number = name.strip_prefix("cache-").and_then(|number| number.parse().ok());
    match number {
        Some(number) => answer(200, &object(number)),
        None => failure(404, "not found", &name),
    }
}

fn policies() -> Response {
    let text = include_str!("../../../deploy/policies/appcat.yaml");
    let mut policy: Value = serde_saphyr::from_str(text).unwrap();
    let condition =
        json!({"type": "Accepted", "status": "True", "reason": "Compiled", "message": HOSTILE});
    policy["status"] = json!({"conditions": [condition]});
    answer(
        200,
        &json!({"kind": "StatusPolicyList", "apiVersion": "statusgate.dev/v1alpha1", "metadata": {}, "items": [policy]}),
    )
}

async fn browser() -> (Api, Browser) {
    let open = Semaphore::new(0);
    open.close();
    browser_with(Arc::new(open)).await
}

/// With a gate before the last page of the list.
async fn browser_with(last: Arc<Semaphore>) -> (Api, Browser) {
    let names = [("vshnredis", "VSHNRedis"), ("vshnredis/status", "VSHNRedis")];
    let path = format!("/apis/{GROUP}/v1");
    let routes = Router::new()
        .route("/apis", get(async || groups(&[GROUP])))
        .route(&path, get(async move || resources(GROUP, &names)))
        .route(&format!("{path}/vshnredis"), get(async move |uri| list(uri, &last).await))
        .route(&format!("{path}/namespaces/{{namespace}}/vshnredis/{{name}}"), get(read))
        .route("/apis/statusgate.dev/v1alpha1/statuspolicies", get(async || policies()))
        .fallback(async || failure(403, "forbidden", ""));
    let api = Api::serve(routes).await;
    let browser = Browser::of(api.command("ui"));
    (api, browser)
}

const ROWS: &str = "document.querySelectorAll('section tbody tr').length";
/// Moves the clock of the page forward, in milliseconds.
const LATER: &str = "const now = Date.now.bind(Date); Date.now = () => now() + argument";
const FIRST: &str = "document.querySelector('section tbody a').textContent";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn the_audit_is_shown_filtered_and_refreshed_without_losing_the_place() {
    let (_api, browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    let first = browser.run(&format!("return [{ROWS}, {FIRST}]"), &Value::Null);
    // Those that failed, with the worst findings, that last longest.
    assert_eq!(first, json!([100, "team-17/cache-1017"]));
    // A click on a part of a bar is a filter, and the filter is the address.
    browser.click(".bar .is-inProgress");
    browser.shows("Objects (1,700 of 10,000)");
    browser.until(
        "return new URLSearchParams(location.hash.split('?')[1]).get('health') === 'inProgress'",
    );
    browser.click(FILTER);
    browser.click("#filter-text");
    browser.type_text("TEAM-8/");
    browser.shows("Objects (50 of 10,000)");
    browser.post("/refresh", &json!({}));
    browser.shows("Objects (50 of 10,000)");
    browser.click("a[href='#/cluster?finding=deny']");
    browser.shows("of 10,000)");
    browser.click("#more");
    browser.until(&format!("return {ROWS} === 200"));
    // An object and back: the same rows at the same place.
    let link = "section tbody tr:nth-child(150) a";
    let place = "const { activeElement } = document;
        return [Math.round(activeElement.getBoundingClientRect().top), activeElement.textContent]";
    browser.run(
        &format!("document.querySelector('{link}').scrollIntoView({{block: 'center'}})"),
        &Value::Null,
    );
    let before =
        format!("return Math.round(document.querySelector('{link}').getBoundingClientRect().top)");
    let before = browser.run(&before, &Value::Null);
    let name =
        browser.run(&format!("return document.querySelector('{link}').textContent"), &Value::Null);
    browser.click(link);
    browser.shows("What backfill would write");
    browser.post("/back", &json!({}));
    browser.until(&format!("return {ROWS} === 200"));
    browser.until(&format!("return document.activeElement.textContent === {name}"));
    assert_eq!(browser.run(place, &Value::Null), json!([before, name]));
    // A refresh, too.
    browser.shows("Judged at");
    browser.run("window.before = document.querySelector('section tbody')", &Value::Null);
    browser.run("document.querySelector('#refresh').click()", &Value::Null);
    browser.until("return document.querySelector('section tbody') !== window.before");
    assert_eq!(browser.run(place, &Value::Null), json!([before, name]));
    // Back removes a filter.
    browser.post("/back", &json!({}));
    browser.shows("Objects (50 of 10,000)");
    browser.post("/back", &json!({}));
    browser.shows("Objects (10,000)");
    browser.has_no_errors();
}

/// Opens the filters.
const FILTER: &str = "details:has(#filter-text) > summary";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn what_failed_is_first_and_reached_with_few_keys_also_on_a_phone() {
    let (_api, browser) = browser().await;
    for width in [1280, 768, 380] {
        browser.look("light", width);
        browser.open("cluster");
        browser.shows("Objects (10,000)");
        let totals =
            "return document.querySelector('.totals').innerText.split('\\n').filter(Boolean)[1]";
        let first = browser.run(totals, &Value::Null);
        assert!(first.as_str().unwrap().starts_with("failed "), "{first}");
        let row = "const row = document.querySelector('section tbody tr');
            const place = (one) => { const { left, right, bottom } = one.getBoundingClientRect(); return { left, right, bottom }; };
            const [health, object] = [row.querySelector('.badge'), row.querySelector('a')].map(place);
            return [row.querySelector('.badge').textContent, health.left >= 0 && health.right <= innerWidth,
                object.right <= innerWidth, object.bottom <= innerHeight]";
        let seen = browser.run(row, &Value::Null);
        assert_eq!(seen, json!(["failed", true, true, true]), "at {width}");
        browser.run("document.activeElement.blur()", &Value::Null);
        let tabs = (1..=20).find(|_| {
            browser.press(&[TAB]);
            browser.run("return document.activeElement.matches('section tbody a')", &Value::Null)
                == true
        });
        assert!(tabs.is_some_and(|tabs| tabs <= 10), "{tabs:?} at {width}");
        let small =
            "return [...document.querySelectorAll('main a, main button, main label, main summary')]
            .filter((one) => one.getBoundingClientRect().height < 20).map((one) => one.outerHTML)";
        assert_eq!(browser.run(small, &Value::Null), json!([]), "too small to touch");
        // Nothing but failures is red.
        let red = "const red = getComputedStyle(document.querySelector('.is-failed')).color;
            return [...document.querySelectorAll('main *')].filter((one) => getComputedStyle(one).color === red && !one.closest('.is-failed'))
                .map((one) => one.outerHTML)";
        assert_eq!(browser.run(red, &Value::Null), json!([]), "red means failed");
    }
    // The totals are a choice.
    browser.click(".totals label:has(#health-failed)");
    browser.until(
        "return new URLSearchParams(location.hash.split('?')[1]).get('health') === 'failed'",
    );
    browser.has_no_errors();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn a_visible_page_refreshes_and_recovers_by_itself() {
    let (_api, browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    browser.shows(" s ago");
    browser.run("window.before = document.querySelector('section tbody')", &Value::Null);
    browser.run(LATER, &3_600_000.into());
    browser.until("return document.querySelector('section tbody') !== window.before");
    // Without a network, it shows what it has, and says so.
    let network = |offline: bool| {
        let conditions = json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        browser.devtools("Network.enable", &json!({}));
        browser.devtools("Network.emulateNetworkConditions", &conditions);
    };
    network(true);
    browser.run(LATER, &3_600_000.into());
    browser.shows("This page tries again");
    browser.shows("Objects (10,000)");
    network(false);
    browser.run(LATER, &3_600_000.into());
    browser.until("return !document.querySelector('main').innerText.includes('tries again')");
    // The same for a page that is opened meanwhile.
    network(true);
    browser.run("location.hash = '#/cluster/doctor'", &Value::Null);
    browser.shows("This page tries again");
    network(false);
    browser.shows("api-server");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn a_page_outlives_its_program() {
    let (api, mut browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    browser.stop_program();
    browser.run(LATER, &3_600_000.into());
    browser.shows("This page tries again");
    browser.shows("Objects (10,000)");
    // A place that the page never showed.
    browser.run("location.hash = '#/conventions'", &Value::Null);
    browser.shows("This page tries again");
    browser.restart_program(api.command("ui"));
    browser.shows("appcat");
    browser.run("location.hash = '#/cluster'", &Value::Null);
    browser.shows("Objects (10,000)");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn a_hidden_page_asks_for_nothing_until_it_is_visible_again() {
    let (_api, browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    browser.shows(" ago");
    let count = "window.before = document.querySelector('section tbody');
        const fetched = window.fetch;
        window.asked = 0;
        window.fetch = (...request) => { window.asked += 1; return fetched(...request); }";
    browser.run(count, &Value::Null);
    // Chromium without a window is always visible.
    let visibility =
        "Object.defineProperty(document, 'visibilityState', {value: argument, configurable: true})";
    browser.run(visibility, &"hidden".into());
    browser.run(LATER, &3_600_000.into());
    browser.shows("Judged at");
    browser.until("return document.querySelector('.age').innerText.includes(' h ago')");
    // A pass lasts a second.
    // The tick that shows the age also asks.
    assert_eq!(browser.run("return window.asked", &Value::Null), 0);
    browser.run(visibility, &"visible".into());
    browser.until("return document.querySelector('section tbody') !== window.before");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn a_pass_shows_its_progress_until_it_ends() {
    let last = Arc::new(Semaphore::new(0));
    let (_api, browser) = browser_with(Arc::clone(&last)).await;
    browser.open("cluster");
    browser.until(
        "const bar = document.querySelector('[role=status] progress');
        return bar && bar.max === 10000 && bar.value >= 9000 && bar.value < 10000",
    );
    browser.shows("of 10,000");
    last.close();
    browser.shows("Objects (10,000)");
    browser.until("return !document.querySelector('progress')");
    browser.has_no_errors();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn objects_checks_and_policies_fit_and_their_texts_are_never_markup() {
    let (_api, browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    let object = |number: usize| {
        format!("cluster/object/vshnredis.{GROUP}/team-{}/cache-{number}", number % 40)
    };
    for (name, place, shown) in [
        ("cluster", "cluster".to_owned(), "Objects (10,000)"),
        ("cluster-object", object(0), "phase Ready disagrees: condition Ready is False"),
        ("cluster-hostile", object(2), "appcat/phase-value"),
        ("cluster-backfill", object(3), "+ phase: Unknown"),
        ("cluster-doctor", "cluster/doctor".to_owned(), "api-server"),
        ("cluster-policies", "cluster/policies".to_owned(), "Accepted=True"),
    ] {
        browser.fits(name, &place, shown);
        let found = "return [window.hacked ?? 0, document.querySelectorAll('main script, main img').length]";
        assert_eq!(browser.run(found, &Value::Null), json!([0, 0]), "{name}");
    }
    browser.open(&object(OBJECTS).replace("cache-", "missing-"));
    browser.shows("does not exist");
    browser.has_no_errors();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn an_object_can_be_found_with_the_keyboard() {
    let (_api, browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    browser.click(FILTER);
    browser.run("document.querySelector('#filter-text').focus()", &Value::Null);
    browser.type_text("CACHE-101");
    browser.shows("Objects (11 of 10,000)");
    for _ in 0..12 {
        browser.press(&[TAB]);
        if browser.run("return document.activeElement.matches('section tbody a')", &Value::Null)
            == true
        {
            break;
        }
    }
    browser.press(&[ENTER]);
    browser.shows("Why it is judged so");
    browser.until("return document.activeElement.id === 'main'");
    browser.has_no_errors();
}

/// `cargo test --test command_line ten_thousand -- --ignored --nocapture` prints the times.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn of_ten_thousand_objects_only_a_hundred_are_in_the_table() {
    let (_api, browser) = browser().await;
    browser.open("cluster");
    browser.shows("Objects (10,000)");
    // Now the result is there, and the page only has to get and show it.
    browser.open("cluster");
    let listed = "while (!document.querySelector('section tbody tr')) await new Promise(requestAnimationFrame);
        return performance.now();";
    let listed = browser.run(listed, &Value::Null);
    let filter = "const input = document.querySelector('#filter-text');
        const start = performance.now();
        input.value = '7';
        input.dispatchEvent(new Event('input'));
        document.body.offsetHeight;
        return performance.now() - start;";
    let filtered = browser.run(filter, &Value::Null);
    println!("the list: {listed} ms after the start of the page; a filter: {filtered} ms");
    browser.shows("Objects (3,439 of 10,000)");
    assert_eq!(browser.run(&format!("return {ROWS}"), &Value::Null), 100);
}
