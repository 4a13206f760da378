//! The page of `statusgate ui` in Chromium, through its WebDriver. `make test-browser` runs these tests; others skip them,
//! because they need Debian's packages chromium and chromium-driver, and the documentation site.

mod cluster;
mod places;
mod site;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::STATUSGATE;

/// A page that does not show something for so long will not show it.
const LONG: Duration = Duration::from_secs(60);

/// As root in a container, without requests of its own.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --window-size=1280,900";

/// Under load, Chromium sometimes exits before its driver reaches it.
const STARTS: usize = 3;

// Keys of WebDriver.
const BACKSPACE: &str = "\u{e003}";
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";

/// The program, the driver and a browser with a new profile.
struct Browser {
    /// None for the documentation site.
    program: Option<Child>,
    driver: Child,
    profiles: TempDir,
    page: String,
    port: u16,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.try_send("DELETE", "", &json!({}));
        for process in self.program.iter_mut().chain([&mut self.driver]) {
            let _ = (process.kill(), process.wait());
        }
    }
}

impl Browser {
    fn start() -> Self {
        let mut program = Command::new(STATUSGATE);
        program.arg("ui");
        Self::of(program)
    }

    /// One for the program, and one for the site, in which the engine is WebAssembly.
    fn both() -> [Self; 2] {
        [Self::start(), Self::at(site::serve(), None)]
    }

    /// A browser for the page of a command.
    fn of(mut program: Command) -> Self {
        program.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut program = program.spawn().unwrap();
        let page = line_with(program.stderr.take().unwrap(), "http://");
        Self::at(page.split_once(": ").unwrap().1.to_owned(), Some(program))
    }

    fn stop_program(&mut self) {
        let mut program = self.program.take().unwrap();
        program.kill().unwrap();
        program.wait().unwrap();
    }

    /// Starts another program at the address of the first.
    fn restart_program(&mut self, mut program: Command) {
        let address = self.page.trim_start_matches("http://").trim_end_matches('/');
        program.args(["--listen", address]).stderr(Stdio::piped());
        let mut program = program.spawn().unwrap();
        line_with(program.stderr.take().unwrap(), "http://");
        self.program = Some(program);
    }

    fn at(page: String, program: Option<Child>) -> Self {
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn();
        let mut driver = driver.unwrap();
        let started = line_with(driver.stdout.take().unwrap(), "successfully on port ");
        let port = started.split_once("on port ").unwrap().1.trim_end_matches('.').parse().unwrap();
        let (profiles, session) = (tempfile::tempdir().unwrap(), String::new());
        let mut browser = Self { program, driver, profiles, page, port, session };
        let mut session = browser.new_session(0);
        for number in 1..STARTS {
            session = session.or_else(|_| browser.new_session(number));
        }
        browser.session = session.unwrap();
        browser
    }

    /// The path of a new session. Each has a profile of its own.
    fn new_session(&self, number: usize) -> Result<String, Value> {
        let folder = self.profiles.path().join(number.to_string());
        let folder = format!("--user-data-dir={}", folder.display());
        let flags: Vec<&str> = FLAGS.split_whitespace().chain([folder.as_str()]).collect();
        let options = json!({
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let body = json!({"capabilities": {"alwaysMatch": options}});
        let answer = self.try_send("POST", "/session", &body).unwrap();
        let session = answer["value"]["sessionId"].as_str();
        session.map(|session| format!("/session/{session}")).ok_or_else(|| answer.clone())
    }

    /// One command of WebDriver.
    #[track_caller]
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut answer = self.try_send(method, path, body).unwrap();
        assert!(answer["value"]["error"].is_null(), "{method} {path} {body}: {answer:#}");
        answer["value"].take()
    }

    fn try_send(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let (body, session) = (body.to_string(), &self.session);
        let length = body.len();
        let head = format!(
            "{method} {session}{path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}"
        );
        write!(stream, "{head}\r\n\r\n{body}")?;
        let mut reader = BufReader::new(stream);
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, body)
    }

    /// Runs a function body, which may wait.
    #[track_caller]
    fn run(&self, script: &str, argument: &Value) -> Value {
        let script = format!("return (async (argument) => {{ {script} }})(arguments[0])");
        self.post("/execute/sync", &json!({"script": script, "args": [argument]}))
    }

    /// Opens a place.
    fn open(&self, place: &str) {
        // A new fragment alone is no new page.
        self.post("/url", &json!({"url": "about:blank"}));
        self.post("/url", &json!({"url": format!("{}#/{place}", self.page)}));
        self.until("return document.querySelector('main h1, main .error') !== null");
    }

    /// Opens the playground with a state.
    fn open_write(&self, state: &Value) {
        self.open("conventions");
        let script = "return (await import('./address.js')).pack(argument)";
        let packed = self.run(script, state);
        self.open(&format!("playground?s={}", packed.as_str().unwrap()));
    }

    #[track_caller]
    fn until(&self, condition: &str) {
        let start = Instant::now();
        while self.run(condition, &Value::Null) != true {
            let text = || self.run("return document.body.innerText", &Value::Null);
            assert!(start.elapsed() < LONG, "{condition}: {}", text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        self.until(&format!(
            "return document.querySelector('main').innerText.includes({})",
            json!(text)
        ));
    }

    /// Clicks an element as a mouse does.
    #[track_caller]
    fn click(&self, selector: &str) {
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap();
        self.post(&format!("/element/{id}/click"), &json!({}));
    }

    /// Presses keys, one after the other.
    fn press(&self, keys: &[&str]) {
        let presses = keys.iter().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let actions: Value = presses.collect();
        self.post(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        );
    }

    /// Puts the cursor into an editor.
    fn edit(&self, id: &str) {
        let focus =
            "document.getElementById(argument).shadowRoot.querySelector('.cm-content').focus()";
        self.run(focus, &id.into());
    }

    fn type_text(&self, text: &str) {
        let keys: Vec<String> = text.chars().map(|key| key.to_string()).collect();
        self.press(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    fn look(&self, theme: &str, width: usize) {
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
        let size =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Keeps a picture in target/screenshots.
    fn screenshot(&self, name: &str) {
        let size = self.run(
            "return [innerWidth, Math.min(document.documentElement.scrollHeight, 5000)]",
            &Value::Null,
        );
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1});
        let picture = self.devtools(
            "Page.captureScreenshot",
            &json!({"captureBeyondViewport": true, "clip": clip}),
        );
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// A place fits in both themes and on a phone.
    #[track_caller]
    fn fits(&self, name: &str, place: &str, shown: &str) {
        for (theme, width, back) in [
            ("light", 1280, "rgb(255, 255, 255)"),
            ("dark", 1280, "rgb(18, 23, 30)"),
            ("dark", 380, "rgb(18, 23, 30)"),
        ] {
            self.look(theme, width);
            self.open(place);
            self.shows(shown);
            let layout = self.run(LAYOUT, &Value::Null);
            self.screenshot(&format!("{name}-{theme}-{width}"));
            let expected = json!({"back": back, "overflow": 0, "unnamed": [], "headings": 1});
            assert_eq!(layout, expected, "{name} {theme} {width}");
        }
    }

    /// The browser reported no error, such as a script that the policy forbids.
    #[track_caller]
    fn has_no_errors(&self) {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let errors = log.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        assert_eq!(errors.collect::<Vec<_>>(), [&Value::Null; 0]);
    }
}

/// The first line with a text; the rest is read and dropped.
fn line_with(output: impl Read + Send + 'static, text: &str) -> String {
    let mut lines = BufReader::new(output).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains(text)).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    line
}

/// The color of the background, the width of what does not fit, and what is in the way of a reader of the screen.
const LAYOUT: &str = "
    const unnamed = [...document.querySelectorAll('main input, main select, main button, main a')]
        .filter((one) => !one.labels?.length && !one.textContent.trim() && !one.getAttribute('aria-label'));
    return {
        back: getComputedStyle(document.body).backgroundColor,
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        unnamed: unnamed.map((one) => one.outerHTML),
        headings: document.querySelectorAll('h1').length,
    }";
