//! Manifests, as `check` and `status` read them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use statusgate_core::kstatus;
use statusgate_core::model::{Json, Object};
use statusgate_core::source::{Identity, Manifests, Source, json_at};

fuzz_target!(init: statusgate_fuzz::catch_panics(), |data: &[u8]| {
    statusgate_fuzz::run(data, || read(data));
});

fn read(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files = [Source::new("input.yaml", text)];
    let manifests = Manifests::read(&files);
    for mistake in manifests.mistakes() {
        assert!(!mistake.to_string().is_empty());
    }
    for warning in manifests.warnings() {
        assert!(!warning.to_string().is_empty());
    }
    for manifest in manifests.iter() {
        let places = [
            "",
            "status",
            "status.phase",
            "status.conditions[0].type",
            "metadata.labels[a.b/c]",
            "kind",
            "status.conditions[?(@.type==\"Ready\")]",
        ];
        let mut found = manifest.places();
        for field in places {
            assert!(found.at(field).line > 0);
        }
        assert!(!manifest.mistake("status.phase", "message".to_owned()).to_string().is_empty());
        assert!(!manifest.identity.to_string().contains('\n'));
        assert!(text.contains(manifest.written()));
        // The engine can read the text, unless its metadata are of another type.
        if let (Err(error), Ok(value)) =
            (Object::parse(manifest.text), serde_json::from_str::<Value>(manifest.text))
        {
            let metadata = &value["metadata"];
            assert!(!metadata.is_object() && !metadata.is_null(), "{error}: {value}");
        }
        if let Ok(json) = Json::parse(manifest.text) {
            let _ = kstatus::compute(&json, 0, kstatus::Fork::Fluxcd);
        }
        if manifest.item.is_none() {
            assert_eq!(Identity::of(manifest.text).as_ref(), Ok(manifest.identity));
            reading_again_changes_nothing(manifest.text);
        }
    }
    let middle = text.floor_char_boundary(text.len() / 2);
    let _ = json_at(&files[0], middle);
    agrees_with_serde_json(text);
}

fn reading_again_changes_nothing(json: &str) {
    let files = [Source::new("again.json", json)];
    let again = Manifests::read(&files);
    let texts: Vec<&str> = again.iter().map(|manifest| manifest.text).collect();
    assert_eq!(texts, [json]);
}

/// An object in JSON is one manifest with this text.
fn agrees_with_serde_json(text: &str) {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(text) else { return };
    let name =
        |member: &str| members.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (Some(_), Some(kind)) = (name("apiVersion"), name("kind")) else { return };
    if kind.ends_with("List") {
        return;
    }
    let files = [Source::new("input.json", text)];
    let manifests = Manifests::read(&files);
    assert!(manifests.mistakes().is_empty(), "{}", manifests.mistakes()[0]);
    let values: Vec<Value> = manifests
        .iter()
        .map(|manifest| serde_json::from_str(manifest.text).expect("JSON"))
        .collect();
    assert_eq!(values, [Value::Object(members)]);
}
