//! The built-in conventions match the systems they describe: the examples of their pages, one change
//! for each of their rules, the documents they come from, and recorded answers of apimachinery.

mod examples;
mod judging;
mod oracles;
mod recorded;
mod rules;
