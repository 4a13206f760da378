//! The configuration of a client: a kubeconfig, or the service account of the pod.

use std::path::Path;
use std::time::Duration;

use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use secrecy::{ExposeSecret, SecretString};

use super::ClusterError;
use super::call::Silence;
use statusgate_core::causes::with_causes;

pub(super) async fn configure(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Config, String), ClusterError> {
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = match kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from) {
        Ok(file) => Config::from_custom_kubeconfig(file, &options).await,
        Err(error) => Err(error),
    };
    let mut config = config.map_err(without_secrets);
    let from = match (kubeconfig, context) {
        (Some(path), _) => format!("the kubeconfig {}", path.display()),
        (None, Some(context)) => format!("the context {context} of the kubeconfig"),
        (None, None) => {
            // Like `Config::infer`, but that one's error contains lines of the file.
            config = config.or_else(|error| {
                Config::incluster().map_err(|outside| format!("{error}; {outside}").into())
            });
            "a kubeconfig (KUBECONFIG, ~/.kube/config) or a service account".to_owned()
        }
    };
    let config = config.and_then(|mut config| {
        config.cluster_url = without_user(&config.cluster_url)?;
        config.auth_info.token = config.auth_info.token.as_ref().map(one_line).transpose()?;
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_LIMIT);
        Ok(config)
    });
    match config {
        Ok(config) => Ok((config, from)),
        Err(source) => Err(ClusterError::BadConfig { from, source }),
    }
}

/// The error of a kubeconfig without an excerpt: the next line may be a token.
fn without_secrets(error: KubeconfigError) -> Silence {
    match error {
        KubeconfigError::Parse(error) => {
            format!("invalid YAML: {}", error.without_snippet()).into()
        }
        // Its message contains its cause.
        error => with_causes(&error).into(),
    }
}

/// Removes user and password from an address, because errors contain it. client-go uses
/// them for basic auth, which API servers no longer support since 1.19.
fn without_user(url: &Uri) -> Result<Uri, Silence> {
    let Some((_, host)) = url.authority().and_then(|whole| whole.as_str().rsplit_once('@')) else {
        return Ok(url.clone());
    };
    let mut parts = url.clone().into_parts();
    parts.authority = Some(host.parse()?);
    Ok(Uri::from_parts(parts)?)
}

/// A token for a header. A block of YAML (`token: |`) ends with a line break.
fn one_line(token: &SecretString) -> Result<SecretString, Silence> {
    let text = token.expose_secret().trim();
    if HeaderValue::from_str(text).is_err() {
        return Err("the token of the user contains a line break or a control character".into());
    }
    Ok(SecretString::from(text))
}

/// Limits the wait for an address without a server.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use statusgate_core::causes::with_causes;

    async fn configured(server: &str, token: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let text = format!(
            "current-context: c\nclusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users:\n- name: u\n  user:\n    token: {token}\n"
        );
        std::fs::write(&path, text).unwrap();
        let configured = configure(Some(&path), None).await;
        configured.map(|(config, _)| config).map_err(|error| with_causes(&error))
    }

    #[tokio::test]
    async fn the_error_of_a_broken_kubeconfig_has_a_location_and_no_excerpt() {
        let error = configured("https://a", "[SECRET, b]").await.unwrap_err();
        assert!(error.contains("line 7, column 12"), "{error}");
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[tokio::test]
    async fn a_token_is_one_line() {
        let config = configured("https://a", "|\n      SECRET").await.unwrap();
        assert_eq!(config.auth_info.token.unwrap().expose_secret(), "SECRET");
        let error = configured("https://a", "\"SECRET\\nx\"").await.unwrap_err();
        assert!(error.contains("line break") && !error.contains("SECRET"), "{error}");
    }

    #[tokio::test]
    async fn the_password_of_an_address_is_removed() {
        let config = configured("https://me:SECRET@a:6443/path", "b").await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://a:6443/path");
    }
}
