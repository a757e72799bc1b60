/** The items of `chrome.storage` through which the service worker and the options page communicate. */

/**
 * In `chrome.storage.local`: the `Settings`. The options page writes them. The service worker sets `isOn` to false when the server ends the connection.
 */
export const SETTINGS_KEY = 'settings'
/** In `chrome.storage.session`: a `ConnectionState`. The service worker writes it. */
export const STATE_KEY = 'connection'
/** In `chrome.storage.session`. The options page changes the value, and the service worker then tries to connect at once. */
export const WAKE_KEY = 'wake'
