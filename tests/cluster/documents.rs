//! StatusPolicies and StatusConventions: their definitions, the policies in use, their status, and the webhook that
//! reviews them.

mod replica;

mod definitions;
mod following;
mod reviewing;
