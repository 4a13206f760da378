//! The places "Conventions" and "Playground".

use serde_json::{Value, json};

use super::{BACKSPACE, Browser, ENTER, RIGHT, TAB};

#[test]
#[ignore = "needs Chromium"]
fn each_place_fits_in_both_themes_and_on_a_phone() {
    let browser = Browser::start();
    for (name, place, shown) in [
        ("list", "conventions", "appcat"),
        ("convention", "conventions/appcat", "Truth table"),
        ("large", "conventions/capi-v1beta1", "Truth table"),
        ("rule", "conventions/appcat/rules/phase-ready", "A write that violates it"),
        ("playground", "playground", "appcat/phase-ready"),
    ] {
        browser.fits(name, place, shown);
    }
    browser.open("cluster");
    browser.shows("there is no cluster here: start statusgate ui --kubeconfig FILE");
    browser.has_no_errors();
}

/// `cargo test --release --test command_line interactive -- --ignored --nocapture` prints the medians.
#[test]
#[ignore = "needs Chromium"]
fn places_become_interactive_with_an_empty_cache() {
    let browser = Browser::start();
    let watch = "new MutationObserver((_, observer) => {
            if (!document.querySelector('main h1')) return;
            window.interactive = performance.now();
            observer.disconnect();
        }).observe(document, {childList: true, subtree: true})";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": watch}));
    for place in ["conventions", "conventions/appcat", "playground"] {
        let mut times = [0.0; 7].map(|_: f64| {
            browser.devtools("Network.clearBrowserCache", &json!({}));
            browser.open(place);
            browser.run("return window.interactive", &Value::Null).as_f64().unwrap()
        });
        times.sort_by(f64::total_cmp);
        println!("{place}: {:.0} ms after the start of the page", times[3]);
    }
    browser.has_no_errors();
}

#[test]
#[ignore = "needs Chromium"]
fn a_state_of_a_convention_can_be_played_and_opened_as_an_object() {
    for browser in Browser::both() {
        browser.open("conventions");
        browser.click("a[href='#/conventions/appcat']");
        browser.shows("Try a state");
        let fact = "[...document.querySelectorAll('.fact')].find((fact) => fact.firstChild.textContent === 'Ready')";
        let is_false =
            "[...fact.querySelectorAll('span')].find((one) => one.textContent === 'False')";
        browser.run(&format!("const fact = {fact}; {is_false}.id = 'false'"), &Value::Null);
        browser.click("#false");
        browser.until(
            "return new URLSearchParams(location.hash.split('?')[1]).get('Ready') === 'False'",
        );
        browser.shows("phase Ready disagrees: condition Ready is False");
        let before =
            browser.run("return document.querySelector('.play .result').innerText", &Value::Null);
        // The address is the state.
        browser.post("/refresh", &json!({}));
        browser.shows("Try a state");
        let after =
            browser.run("return document.querySelector('.play .result').innerText", &Value::Null);
        assert_eq!(before, after);
        browser.click(".play .result .button");
        browser.shows("kubectl prints");
        browser.has_no_errors();
    }
}

#[test]
#[ignore = "needs Chromium"]
fn a_round_of_the_playground() {
    for browser in Browser::both() {
        browser.open("playground");
        browser.shows("The VSHNRedis \"cache\" is invalid: status.phase: phase Ready disagrees");
        browser.until("return document.querySelector('#object').shadowRoot.querySelector('.cm-lintRange-error') !== null");
        // A finding leads to its place.
        browser.click(".findings button.link");
        browser.until("return document.activeElement.id === 'object'");
        // A policy repairs what this writer sets.
        let open = "document.querySelectorAll('details').forEach((one) => { one.open = true })";
        browser.run(open, &Value::Null);
        browser.click("#user");
        browser.type_text("system:serviceaccount:syn-crossplane:crossplane");
        browser.until("return document.querySelector('.verdict .badge').textContent === 'allowed'");
        browser.shows("+ phase: Provisioning");
        browser.shows("Warning: status.phase");
        // A mistake that is typed has a mark and a message, until it is removed.
        browser.edit("old");
        browser.type_text("[x");
        browser.shows("old:1:");
        browser.press(&[BACKSPACE, BACKSPACE]);
        browser.shows("kubectl prints");
        browser.click("#case");
        browser.shows("A case for `statusgate test`");
        browser.shows("user: system:serviceaccount:syn-crossplane:crossplane");
        // Keys of a policy are completed from the schema.
        browser.edit("documents");
        browser.type_text("kind: StatusPolicy\nspec:\n  enfo");
        let listed = "document.querySelector('#documents').shadowRoot.querySelector('.cm-tooltip-autocomplete')";
        browser.until(&format!("return {listed}?.innerText.includes('enforcement') ?? false"));
        browser.has_no_errors();
    }
}

#[test]
#[ignore = "needs Chromium"]
fn pasted_writes_become_a_draft_that_judges_the_last_of_them() {
    let writes = include_str!("../../../examples/write-a-convention/writes.jsonl");
    for browser in Browser::both() {
        browser.open("playground");
        browser.shows("kubectl prints");
        let paste = "document.querySelector('#recorded').value = argument;
            document.querySelectorAll('details').forEach((one) => { one.open = true })";
        browser.run(paste, &writes.into());
        browser.click("#draft");
        browser.shows("Draft for qdrantclusters.qdrant.io, which extends metav1");
        browser.shows("kind: StatusConvention");
        let play = "[...document.querySelectorAll('.outcome button')]
            .find((one) => one.textContent === 'Judge the last write by it').id = 'play'";
        browser.run(play, &Value::Null);
        browser.click("#play");
        browser
            .until("return document.querySelector('.verdict').innerText.includes('QdrantCluster')");
        browser.until("return document.querySelector('.verdict .badge').textContent === 'allowed'");
        // What is no recording is a mistake.
        browser.run(paste, &"hello".into());
        browser.click("#draft");
        browser.until("return document.querySelector('.outcome').innerText.includes('writes:1')");
        browser.has_no_errors();
    }
}

#[test]
#[ignore = "needs Chromium"]
fn everything_can_be_done_with_the_keyboard() {
    let browser = Browser::start();
    browser.open("conventions");
    // Past the link to the content and the places: the first convention.
    browser.run("document.activeElement.blur()", &Value::Null);
    browser.press(&[TAB, TAB, TAB, TAB, TAB, ENTER]);
    browser.shows("Try a state");
    browser.until("return document.activeElement.id === 'main'");
    let focused = "document.activeElement.name?.startsWith('fact-') ?? false";
    for _ in 0..40 {
        browser.press(&[TAB]);
        if browser.run(&format!("return {focused}"), &Value::Null) == true {
            break;
        }
    }
    browser.press(&[RIGHT]);
    browser.until("return new URLSearchParams(location.hash.split('?')[1]).size === 1");
    browser.open("playground");
    // Tab leaves an editor.
    browser.edit("object");
    browser.press(&[TAB]);
    browser.until("return document.activeElement.tagName === 'SUMMARY'");
    browser.press(&[ENTER]);
    browser.until("return document.activeElement.parentElement.open");
    browser.has_no_errors();
}

#[test]
#[ignore = "needs Chromium"]
fn a_link_that_names_what_a_convention_does_not_have_says_so() {
    let browser = Browser::start();
    browser.open("conventions/appcat?Ready=False&PodRaedy=True");
    browser.shows("does not have what the link names: PodRaedy = True");
    browser.shows("phase Ready disagrees: condition Ready is False");
    browser.has_no_errors();
}

#[test]
#[ignore = "needs Chromium"]
fn odd_letters_are_escapes_long_messages_fold_and_long_links_warn() {
    let browser = Browser::start();
    let message = |text: &str| {
        let condition = json!({"type": "Ready", "status": "False", "reason": "R", "message": text});
        json!({"apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis", "metadata": {"name": "a\u{202e}b"},
            "status": {"phase": "Re\u{202e}ady\u{200b}", "conditions": [condition]}})
    };
    browser.open_write(&json!({"object": message("short").to_string()}));
    browser.shows("Re\\u202eady\\u200b");
    let hidden = "return document.querySelector('.outcome').innerText.match(/[\\u200b\\u202e]/g)";
    assert_eq!(browser.run(hidden, &Value::Null), Value::Null);
    assert_eq!(browser.run("return document.querySelector('#long').innerText", &Value::Null), "");
    // Letters that a link cannot compress.
    let mut state = 42_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from(state >> 60).unwrap())
    };
    let long: String = (0..40_000).map(|_| letter()).collect();
    browser.open_write(&json!({"object": message(&long).to_string(), "convention": "metav1"}));
    browser.shows("Many programs cut such a link");
    browser.until("return document.querySelector('.outcome details.long') !== null");
    assert_eq!(
        browser.run("return document.querySelector('.outcome details.long').open", &Value::Null),
        false
    );
}

#[test]
#[ignore = "needs Chromium"]
fn the_frame_of_a_page_of_the_site_is_as_high_as_what_it_shows() {
    let browser = Browser::at(super::site::serve(), None);
    // As the pages of the documentation, this one has no policy that forbids frames.
    browser.post("/url", &json!({"url": format!("{}style.css", browser.page)}));
    let frame = "const frame = document.createElement('iframe');
        frame.src = 'index.html?embedded#/conventions/appcat';
        frame.style.width = '700px';
        document.body.append(frame);";
    browser.run(frame, &Value::Null);
    browser.until(
        "const { contentDocument, clientHeight } = document.querySelector('iframe');
        const { scrollHeight = Infinity, offsetHeight } = contentDocument?.documentElement ?? {};
        return contentDocument?.querySelector('.play') != null && clientHeight > 600 && scrollHeight <= clientHeight && offsetHeight <= clientHeight",
    );
}

#[test]
#[ignore = "needs Chromium"]
fn texts_of_objects_are_never_markup() {
    for browser in Browser::both() {
        let hostile = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>";
        let condition = json!({"type": hostile, "status": hostile, "reason": hostile, "message": hostile, hostile: 1});
        let object = json!({
            "apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis",
            "metadata": {"name": hostile, "namespace": hostile},
            "status": {"phase": hostile, "conditions": [condition], hostile: hostile},
        });
        let named = object.to_string().replace("VSHNRedis", hostile);
        let documents = format!("kind: {hostile}\nspec: [{hostile}]\n");
        for (state, shown) in [
            (json!({"object": object.to_string(), "user": hostile}), "denied VSHNRedis <script>"),
            (
                json!({"object": named, "convention": "appcat", "plural": hostile}),
                "denied <script>",
            ),
            (json!({"object": named, "convention": hostile}), "not judged <script>"),
            (json!({"object": hostile, "old": hostile}), "old:1:1: this is a text"),
            (
                json!({"object": object.to_string(), "documents": documents}),
                "unknown value \"<script>",
            ),
        ] {
            browser.open_write(&state);
            browser.shows(shown);
            browser.click("#case");
            let found = "return [window.hacked ?? 0, document.querySelectorAll('main script, main img').length]";
            assert_eq!(browser.run(found, &Value::Null), json!([0, 0]), "{state}");
        }
        browser.open(&format!("conventions/{}", "%3Cscript%3Ewindow.hacked=1%3C%2Fscript%3E"));
        browser.shows("unknown convention \"<script>");
        browser.has_no_errors();
    }
}
