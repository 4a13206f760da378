//! The built-in conventions match the systems they describe: recorded writes of their controllers, and recorded
//! answers of apimachinery. `tests/command_line/suites.rs` runs a case for each of their rules.

mod oracles;
mod recorded;
mod rules;
