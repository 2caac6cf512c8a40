"""The Django site: what people, admins and CI see."""
