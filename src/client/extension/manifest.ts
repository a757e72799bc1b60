/** The manifest of the extension (https://developer.chrome.com/docs/extensions/reference/manifest). */
import { EXTENSION_KEY } from '../../protocol/browser-extension.js'

export const ICON_SIZES = [16, 32, 48, 128] as const

/** Why the extension needs each permission. Its README shows these texts. */
export const PERMISSIONS = {
  debugger:
    'clicks and types as a person would, reads pages and takes screenshots, in the tabs that you put under control',
  tabGroups: 'gives the group of the tabs under control its name and colour',
  storage: 'keeps what you enter on the options page, and which tabs are under control',
  alarms: 'wakes the extension once a minute, so that it can connect again',
} as const

/**
 * The origins whose responses the extension may read. It reads the response of a refused connection, for example when another program listens on the
 * port.
 */
export const HOSTS = ['http://127.0.0.1/*', 'http://localhost/*'] as const

export function createManifest(version: string) {
  const icons = Object.fromEntries(ICON_SIZES.map((size) => [size, `icons/${size}.png`]))
  return {
    manifest_version: 3,
    name: 'agent-tasks',
    description: 'Lets an agent-tasks server act in the tabs that you put under its control.',
    // Chrome accepts only numbers and dots here.
    version: /^\d+(?:\.\d+)*/.exec(version)?.[0] ?? '0',
    version_name: version,
    key: EXTENSION_KEY,
    minimum_chrome_version: '125',
    icons,
    action: { default_icon: icons, default_title: 'agent-tasks' },
    background: { service_worker: 'background.js', type: 'module' },
    options_page: 'options/options.html',
    permissions: Object.keys(PERMISSIONS),
    host_permissions: HOSTS,
    incognito: 'not_allowed',
    content_security_policy: { extension_pages: CONTENT_SECURITY_POLICY },
  }
}

/** The pages of the extension load only its own scripts, styles and pictures. They may connect to any address, because the person chooses the server. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  'connect-src http: https: ws: wss:',
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')
